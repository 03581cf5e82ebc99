"""Local training on the negative ELBO in mini-batches, as one `tf.function`.

A client's complete training is one call. Each epoch shuffles the client's
indices into the device's data set. The function is traced once per device;
clients and rounds change only its arguments.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bfl_tf import models, parts, seeds, weights
from bfl_tf.data import preprocessing
from bfl_tf.startup import tf, tf_keras
from bfl_tf.training import chain, tasks

# Number of examples whose Jacobians are in memory together.
_FISHER_BATCH = 64


class _Run(NamedTuple):
  """Constants of one training.

  Attributes:
    kl_examples: Divisor of the KL term, float32.
    all_examples: Number of examples of all clients, float32.
  """

  seed: Any
  num_examples: Any
  kl_examples: Any
  num_steps: Any
  prior: Any
  round: Any
  all_examples: Any


class _Progress(NamedTuple):
  """State of one training between two steps; weights are in variables."""

  step: Any
  sum_rates: Any
  sum_loss: Any
  carry: Any


class LocalTraining:
  """Local training of one model under one strategy."""

  def __init__(
    self,
    strategy: tf.distribute.Strategy,
    model: tf_keras.Model,
    data: tasks.Data,
    config: tasks.TrainingConfig,
    of_second: chain.Chain | None = None,
  ):
    """Creates the optimizer's slots; call it under `strategy.scope()`.

    `of_second` is the chain of a second training, or None.
    """
    self._inference = config.inference
    self.variables = weights.Variables.of(model, config.inference.scope)
    self.layout = weights.Layout.of(model, config.inference.scope)
    self._strategy, self._model, self._config = strategy, model, config
    self._mean, self._std = data.mean, data.std
    both = self.variables.trainable
    self._trained = both if config.trains_scale else self.variables.mean
    self._slots = config.optimizer.slots(self._trained)
    self._parts = of_second or chain.Chain(
      [
        part.with_run(part.run._replace(layout=self.layout))
        for part in config.parts
      ]
    )
    self._moving_prior = False
    self._compiled: Any = None
    if config.jit_compile:
      self._compiled = tf.function(self._full_batches, jit_compile=True)
    self._second = {
      name: LocalTraining(strategy, model, data, config, second)
      for name, second in self._parts.seconds.items()
    }

  def signature(self, x, y, task: tasks.ClientTask) -> list:
    """Returns the input signature of `__call__` for jobs like `task`."""
    of = tf.nest.map_structure(tasks.spec_of, task)
    # The rank of the broadcast factor may differ between rounds.
    factor = tasks.any_rows(of.start.factor)
    return [
      tf.TensorSpec(x.shape, x.dtype),
      tf.TensorSpec(y.shape, y.dtype),
      of._replace(
        start=of.start._replace(factor=factor),
        indices=tasks.any_rows(of.indices),
        rates=tasks.any_rows(of.rates),
      ),
    ]

  def __call__(self, x, y, task: tasks.ClientTask) -> tasks.Result:
    """Trains on `x[task.indices]` and `y[task.indices]`, to be compiled."""
    result = self._train(x, y, task)
    for name, training in self._second.items():
      own = seeds.Stream(task.seed)(f'second {name}')
      second = task._replace(seed=own, first_step=np.int32(0))
      result = result.followed_by(training(x, y, second))
    return result

  def _train(self, x, y, task: tasks.ClientTask) -> tasks.Result:
    """Trains with the parts of `config`."""
    config = self._config
    count = tf.size(task.indices)
    num_examples = tf.cast(count, tf.float32)
    ctx = parts.Context(task.start, task.start, task.shared)
    own, carry = self._parts.begin(ctx, task.memory)
    weights.write(self.variables, own)
    self._inference.bound(self.variables)
    if self._slots and task.first_step == 0:
      for slot in self._slots:
        slot.assign(tf.zeros(slot.shape, slot.dtype))
      self._inference.begin(self._slots, self._trained, own)
    given = self._parts.prior(carry)
    self._moving_prior = isinstance(given, parts.Normal)
    prior = self._inference.prior(given, task.start, self._trained)
    stream = seeds.Stream(task.seed)
    kl_examples = tf.cast(count + task.other_examples, tf.float32)
    weight = task.kl_weight
    if isinstance(given, parts.Natural):
      weight *= given.weight
    kl_examples /= weight
    batches = -(-count // config.batch_size)
    num_steps = task.first_step + tf.size(task.rates)
    run = _Run(
      task.seed,
      num_examples,
      kl_examples,
      num_steps,
      prior,
      task.round,
      tf.cast(task.all_examples, tf.float32),
    )
    zero = tf.constant(0.0)
    now = _Progress(task.first_step, zero, zero, carry)
    for epoch in tf.range(-(-tf.size(task.rates) // batches)):
      order = tf.random.experimental.stateless_shuffle(
        task.indices, seed=stream('order', epoch)
      )
      done = 0
      rates = task.rates[epoch * batches : (epoch + 1) * batches]
      end = tf.minimum(count, tf.size(rates) * config.batch_size)
      if self._compiled:
        done = end - end % config.batch_size
        padded = (_padded(values, x.shape[0]) for values in (order, rates))
        now = self._compiled(x, y, *padded, done, run, now)
      for first in tf.range(done, end, config.batch_size):
        batch = order[first : first + config.batch_size]
        rate = rates[first // config.batch_size]
        now = self._next(x, y, batch, rate, run, now)
    taken, carry = now.step - task.first_step, now.carry
    mean_loss = now.sum_loss / tf.cast(taken, tf.float32)
    trace = tasks.Trace(taken, now.sum_rates, mean_loss)
    model = weights.read(self.variables, own)
    last = tasks.Step(
      now.step, None, None, num_examples, kl_examples, num_steps, prior
    )

    def curvature(samples):
      # Replicas have different moving statistics.
      weights.assign(self.variables.buffers, model.buffers)
      return self._curvature(x, task.indices, samples, stream('curvature'))

    def fisher():
      weights.assign(self.variables.buffers, model.buffers)
      return self._fisher(x, task.indices)

    model = self._inference.posterior(
      model, self._slots, last, curvature, fisher
    )
    return self._parts.end(model, carry, trace, config.for_one_site)

  def _full_batches(self, x, y, order, rates, end, run: _Run, now: _Progress):
    """Trains on `order[:end]`, whose size is a multiple of the batch size.

    All shapes are static, as XLA compiles them: `order` and `rates` have a
    place for each example of the data set.
    """
    size = self._config.batch_size
    for first in tf.range(0, end, size):
      batch = tf.slice(order, [first], [size])
      now = self._next(x, y, batch, rates[first // size], run, now)
    return now

  def _next(self, x, y, batch, rate, run: _Run, now: _Progress) -> _Progress:
    """Trains one step on the examples with the indices `batch`."""
    stream = seeds.Stream(run.seed)
    inputs, labels = self._batch(x, y, batch, stream('augment', now.step))
    info = tasks.Step(
      now.step,
      rate,
      stream('step', now.step),
      run.num_examples,
      run.kl_examples,
      run.num_steps,
      round=run.round,
      all_examples=run.all_examples,
    )
    prior = run.prior
    if self._moving_prior:
      given = self._parts.prior(now.carry)
      prior = self._inference.prior(given, None, self._trained)
    loss, carry = self.step(inputs, labels, info, now.carry, prior)
    return _Progress(
      now.step + 1, now.sum_rates + rate, now.sum_loss + loss, carry
    )

  def _curvature(self, x, indices, samples, seed):
    """Returns the diagonal of the Fisher information, by variable.

    It is a mean over the examples. Labels are sampled from the model, so that
    the gradients of different examples are uncorrelated and have the mean 0.
    The squared gradient of a batch is then unbiased for the sum of squares.
    """
    config, stream = self._config, seeds.Stream(seed)
    count, draw = tf.size(indices), tf.constant(0)
    sums = [tf.zeros(variable.shape) for variable in self._trained]
    for _ in tf.range(samples):
      for first in tf.range(0, count, config.batch_size):
        batch = indices[first : first + config.batch_size]
        inputs = preprocessing.normalize(
          tf.gather(x, batch), self._mean, self._std
        )
        gradients = self._on_replicas(
          self._sampled_gradient, inputs, stream('batch', draw)
        )
        sums = [total + tf.square(g) for total, g in zip(sums, gradients)]
        draw += 1
    size = tf.cast(count * samples, tf.float32)
    return [total / size for total in sums]

  def _sampled_gradient(self, inputs, seed):
    stream, likelihood = seeds.Stream(seed), self._config.likelihood
    with tf.GradientTape() as tape, models.scope(stream('model')):
      outputs = self._model(inputs, training=False)
      labels = likelihood.sample(tf.stop_gradient(outputs), stream('labels'))
      loss = tf.reduce_sum(likelihood.loss(outputs, labels))
    return tape.gradient(loss, self._trained, unconnected_gradients='zero')

  def _fisher(self, x, indices):
    """Returns the Fisher information `[num_loc, num_loc]`, float64.

    It is a mean over the examples.
    """
    count, size = tf.size(indices), self.layout.num_trainable()
    total = tf.zeros([size, size], tf.float64)
    for first in tf.range(0, count, _FISHER_BATCH):
      batch = indices[first : first + _FISHER_BATCH]
      inputs = preprocessing.normalize(
        tf.gather(x, batch), self._mean, self._std
      )
      outputs, rows = self._on_replicas(self._jacobians, inputs)
      of_outputs = tf.cast(self._config.likelihood.fisher(outputs), tf.float64)
      rows = tf.cast(rows, tf.float64)
      total += tf.einsum('bcp,bcq->pq', rows, of_outputs @ rows)
    return total / tf.cast(count, tf.float64)

  def _jacobians(self, inputs):
    """Returns outputs, and their Jacobians `[batch, num_outputs, num_loc]`."""
    seed = tf.zeros([2], tf.int32)  # It is not used.

    def of_example(example):
      with tf.GradientTape() as tape, models.scope(seed, draws='none'):
        outputs = self._model(example[tf.newaxis], training=False)[0]
      jacobians = tape.jacobian(
        outputs, self._trained, unconnected_gradients='zero'
      )
      rows = [tf.reshape(each, [outputs.shape[0], -1]) for each in jacobians]
      return outputs, tf.concat(rows, 1)

    return tf.vectorized_map(of_example, inputs)

  def _batch(self, x, y, batch, seed):
    images, config = tf.gather(x, batch), self._config
    if config.augment:
      images = preprocessing.augment(
        images, seed, config.augment_padding, config.augment_border
      )
    inputs = preprocessing.normalize(images, self._mean, self._std)
    return inputs, tf.gather(y, batch)

  def step(self, inputs, labels, step, carry, prior):
    """Trains one step on all replicas and updates the variables in place.

    Args:
      inputs: `[batch, ...]` normalized examples.
      labels: `[batch]`, labels as in `Data`.
    """
    return self._on_replicas(
      self._replica_step, inputs, labels, step, carry, prior
    )

  def _on_replicas(self, function, *arguments):
    """Calls a function on all replicas, whose results are equal."""
    if self._strategy.num_replicas_in_sync == 1:
      return function(*arguments)
    results = self._strategy.run(function, arguments)
    return tf.nest.map_structure(
      lambda value: self._strategy.experimental_local_results(value)[0], results
    )

  def _replica_step(self, inputs, labels, step, carry, prior):
    """Trains one step on the part of the batch of this replica."""
    context = tf.distribute.get_replica_context()
    replicas = float(self._strategy.num_replicas_in_sync)
    replica = context.replica_id_in_sync_group
    batch_size = tf.cast(tf.shape(labels)[0], tf.float32)
    if replicas > 1:
      inputs, labels = (
        _share(values, replica, int(replicas)) for values in (inputs, labels)
      )
    stream = seeds.Stream(step.seed)
    draw = stream('replica', replica)
    info = step._replace(seed=stream('optimizer'), prior=prior)
    means = self._inference.sample(self._trained, self._slots, info)
    rhos = self.variables.untransformed_scale
    with tf.GradientTape() as tape, models.scope(draw, rhos) as scale:
      outputs = self._model(inputs, training=True)
      nll = self._config.likelihood.loss(outputs, labels)
      penalty = tf.add_n(self._model.losses) if self._model.losses else 0.0
      if self._config.trains_scale and rhos:
        divergence = self._inference.divergence(self.variables, scale, prior)
        penalty += divergence / step.kl_examples
      loss = tf.reduce_sum(nll) / batch_size + penalty / replicas
    gradients = tape.gradient(loss, self._trained, unconnected_gradients='zero')
    if replicas > 1:
      loss, gradients = context.all_reduce('sum', (loss, gradients))
    gradients = self._clipped(gradients)
    self._inference.restore(self._trained, means)
    gradients = self._adjust(gradients, carry, step, stream)
    self._config.optimizer.apply(self._trained, self._slots, gradients, info)
    self._inference.bound(self.variables)
    return loss, self._after_step(carry, step, stream)

  def _clipped(self, gradients):
    longest = self._config.max_gradient_norm
    if not longest:
      return gradients
    factor = tf.minimum(1.0, longest / tf.linalg.global_norm(gradients))
    return [factor * gradient for gradient in gradients]

  def _adjust(self, gradients, carry, step, stream):
    """Adds weight decay and the parts' changes to the gradient of the mean."""
    config, decay = self._config, self._config.weight_decay
    by_parts = self._parts.have('gradient')
    if not (decay or by_parts):
      return gradients
    variables = self.variables
    num_loc = len(variables.loc)
    num_scale = len(self._trained) - len(variables.mean)
    scales = gradients[num_loc : num_loc + num_scale]
    of_mean = gradients[:num_loc] + gradients[num_loc + num_scale :]
    if decay:
      of_mean = [
        g + decay * v if config.decay_biases or v.shape.rank > 1 else g
        for g, v in zip(of_mean, variables.mean)
      ]
    if by_parts:
      shapes = [v.shape for v in variables.mean]
      mean = weights.flatten(variables.mean)
      flat = weights.flatten(of_mean)
      flat = self._parts.gradient(flat, mean, carry, step, stream)
      of_mean = weights.unflatten(flat, shapes)
    return of_mean[:num_loc] + scales + of_mean[num_loc:]

  def _after_step(self, carry, step, stream):
    if not self._parts.have('after'):
      return carry
    mean = weights.flatten(self.variables.mean)
    rhos = self.variables.untransformed_scale
    if rhos:
      step = step._replace(scale=tf.nn.softplus(weights.flatten(rhos)))
    new, carry = self._parts.after(mean, carry, step, stream)
    if new is not mean:
      weights.assign(self.variables.mean, new)
    return carry


def _padded(vector, size):
  """Returns a vector with zeros after it, `[size]`."""
  padded = tf.pad(vector, [[0, size - tf.size(vector)]])
  return tf.ensure_shape(padded, [size])


def _share(values, replica, replicas):
  # No share is empty if there are at least as many examples as replicas.
  size = tf.shape(values)[0]
  return values[size * replica // replicas : size * (replica + 1) // replicas]
