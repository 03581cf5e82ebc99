"""Local training: the negative ELBO by minibatches, inside one `tf.function`.

The whole of a client's training is one call: epochs of shuffled minibatches
gathered by index from the data set that the device holds. It is traced once
for a device; clients and rounds change nothing but its arguments.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bfl_tf import models, seeds
from bfl_tf import weights as weights_lib
from bfl_tf.datasets import preprocessing
from bfl_tf.startup import tf, tf_keras
from bfl_tf.training import chain, devices, jobs, objectives


class LocalTraining:
  """Local training of one model under one strategy.

  Attributes:
    variables: the model's variables by flat vector.
    layout: their shapes.
  """

  def __init__(
    self,
    strategy: tf.distribute.Strategy,
    model: tf_keras.Model,
    data: jobs.Data,
    recipe: jobs.Recipe,
  ):
    """Makes the optimizer's slots; call it under `strategy.scope()`."""
    self.variables = weights_lib.Variables.of(model, recipe.random)
    self.layout = weights_lib.Layout.of(model, recipe.random)
    self._strategy, self._model, self._recipe = strategy, model, recipe
    self._mean, self._std = data.mean, data.std
    both = self.variables.trainable
    self._trained = both if recipe.trains_scale else self.variables.mean
    self._slots = recipe.optimizer.slots(self._trained)
    self._fits = recipe.optimizer.posterior_scope == 'all'
    self._parts = chain.with_layout(recipe.parts, self.layout)
    self._prior_provider = self._checked_provider()
    self._shares = self._shares_of_weights()

  def _checked_provider(self):
    part = chain.prior_provider(self._parts)
    if part and not (self._fits or self.variables.untransformed_scale):
      raise ValueError(
        f'--client_parts={part.name} provides the prior of the clients, '
        'which needs a posterior: set --variant=flipout or '
        '--client_optimizer=ivon.'
      )
    return part

  def _shares_of_weights(self):
    """In the mean over a kernel or a bias; None in a sum."""
    if self._recipe.objective.kl_reduction != 'mean':
      return None
    sizes = np.array([shape.num_elements() for shape in self.layout.loc])
    return tf.constant(np.repeat(1.0 / sizes, sizes), tf.float32)

  def signature(self, x, y, job: jobs.Job) -> list:
    """Returns the input signature of `__call__` for jobs like `job`."""
    of = tf.nest.map_structure(jobs.spec_of, job)
    # A rule may return another rank every round.
    factor = jobs.any_rows(of.start.factor)
    return [
      tf.TensorSpec(x.shape, x.dtype),
      tf.TensorSpec(y.shape, y.dtype),
      of._replace(
        start=of.start._replace(factor=factor),
        indices=jobs.any_rows(of.indices),
      ),
    ]

  def __call__(self, x, y, job: jobs.Job) -> jobs.Result:
    """What is compiled: trains on `x[job.indices], y[job.indices]`."""
    recipe = self._recipe
    weights_lib.write(self.variables, job.start)
    self._cap()
    if job.first_step == 0:
      for slot in self._slots:
        slot.assign(tf.zeros(slot.shape, slot.dtype))
      if self._fits:
        scale = weights_lib.marginal_scale(job.start)
        shapes = [variable.shape for variable in self._trained]
        recipe.optimizer.begin(
          self._slots, weights_lib.unflatten(scale, shapes)
        )
    prior = self.prior(job)
    carry = chain.begin(self._parts, job.start, job.shared, job.memory)
    stream = seeds.Stream(job.seed)
    count = tf.size(job.indices)
    num_examples = tf.cast(count, tf.float32)
    all_examples = tf.cast(count + job.other_examples, tf.float32)
    weight = job.kl_weight
    if self._prior_provider:
      weight *= self._prior_provider.prior_weight
    kl_examples = all_examples / weight
    step, rate = job.first_step, job.learning_rate
    batches = -(-count // recipe.batch_size)
    num_steps = job.first_step + job.epochs * batches
    sum_rates, sum_loss = tf.constant(0.0), tf.constant(0.0)
    for epoch in tf.range(job.epochs):
      order = tf.random.experimental.stateless_shuffle(
        job.indices, seed=stream('order', epoch)
      )
      for first in tf.range(0, count, recipe.batch_size):
        batch = order[first : first + recipe.batch_size]
        inputs, labels = self._batch(x, y, batch, stream('augment', step))
        current = rate * self._cycle(step)
        info = jobs.Step(
          step,
          current,
          stream('step', step),
          num_examples,
          kl_examples,
          num_steps,
        )
        loss, carry = self.step(inputs, labels, info, carry, prior)
        sum_rates, sum_loss = sum_rates + current, sum_loss + loss
        step, rate = step + 1, rate * recipe.step_decay
      if (epoch + 1) % recipe.epoch_decay_every == 0:
        rate *= recipe.epoch_decay
    taken = step - job.first_step
    trace = jobs.Trace(taken, sum_rates, sum_loss / tf.cast(taken, tf.float32))
    model = weights_lib.read(self.variables, job.start)
    if self._fits:
      scale = weights_lib.flatten(recipe.optimizer.scales(self._slots))
      model = model._replace(scale=scale, factor=model.factor[:0])
    return chain.finish(self._parts, model, carry, trace)

  def _cycle(self, step):
    """The factor on the rate at a step, by its place in the cycle."""
    length, floor = self._recipe.cycle_length, self._recipe.cycle_floor
    if not length:
      return 1.0
    place = tf.cast(step % length, tf.float32) / max(1, length - 1)
    return 1.0 - (1.0 - floor) * place

  def prior(self, job: jobs.Job) -> Any:
    """The client's prior: what a part gives, the broadcast, or the same one.

    As the layers take it, or by variable for an optimizer that fits.
    """
    if self._prior_provider:
      name = self._prior_provider.name
      shared, memory = job.shared.get(name), job.memory.get(name)
      eta = self._prior_provider.prior(job.start, shared, memory)
      if not self._fits:
        prior = weights_lib.of_natural(eta, job.start)
        return objectives.Prior(prior.loc, prior.scale)
      return self._by_variable(eta)
    start, objective = job.start, self._recipe.objective
    if self._fits and objective.update_prior:
      return self._by_variable(weights_lib.natural(start))
    if self._fits:
      return [(0.0, objective.prior_scale**-2)] * len(self._trained)
    if objective.update_prior:
      return objectives.Prior(start.loc, weights_lib.marginal_scale(start))
    scale = tf.constant(objective.prior_scale, tf.float32)
    return objectives.Prior(tf.constant(0.0), scale)

  def _by_variable(self, eta):
    """Splits natural parameters `[2, num_loc]` for an optimizer that fits."""
    shapes = [variable.shape for variable in self._trained]
    both = tf.unstack(tf.cast(eta, tf.float32))
    return list(zip(*(weights_lib.unflatten(v, shapes) for v in both)))

  def _batch(self, x, y, batch, seed):
    images, recipe = tf.gather(x, batch), self._recipe
    if recipe.augment:
      images = preprocessing.augment(
        images, seed, recipe.augment_padding, recipe.augment_border
      )
    inputs = preprocessing.normalize(images, self._mean, self._std)
    return inputs, tf.gather(y, batch)

  def step(self, inputs, labels, step, carry, prior):
    """One step over all replicas: forward, backward, update, in place.

    Args:
      inputs: `[batch, ...]` normalised examples.
      labels: `[batch]`.
      step: a `Step`.
      carry: one entry per client part.
      prior: of `prior`.

    Returns:
      The loss in nats and the new carry.
    """
    if self._strategy.num_replicas_in_sync == 1:
      return self._replica_step(inputs, labels, step, carry, prior)
    loss, carry = self._strategy.run(
      self._replica_step, (inputs, labels, step, carry, prior)
    )

    # Every replica has applied the same reduced gradient.
    def first(value):
      return self._strategy.experimental_local_results(value)[0]

    return first(loss), tf.nest.map_structure(first, carry)

  def _replica_step(self, inputs, labels, step, carry, prior):
    """One step on one replica's share of the batch."""
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
    info = step._replace(seed=stream('optimizer'))
    if self._fits:
      info = info._replace(prior=prior)
      means = [tf.identity(variable) for variable in self._trained]
      self._recipe.optimizer.sample(self._trained, self._slots, info)
    rhos = self.variables.untransformed_scale
    with tf.GradientTape() as tape, models.scope(draw, rhos) as scale:
      logits = self._model(inputs, training=True)
      nll = objectives.negative_log_likelihood(logits, labels)
      penalty = self._penalties(carry)
      if self._recipe.trains_scale and rhos:
        loc = weights_lib.flatten(self.variables.loc)
        if self._recipe.objective.kl_reduction == 'tied':
          prior = prior._replace(loc=loc)
        divergence = objectives.divergence(loc, scale, prior, self._shares)
        penalty += divergence / step.kl_examples
      loss = tf.reduce_sum(nll) / batch_size + penalty / replicas
    gradients = tape.gradient(loss, self._trained, unconnected_gradients='zero')
    if replicas > 1:
      loss, gradients = context.all_reduce('sum', (loss, gradients))
    gradients = self._clipped(devices.in_float32(gradients))
    if self._fits:
      for variable, mean in zip(self._trained, means):
        variable.assign(mean)
    gradients = self._adjust(gradients, carry, step, stream)
    self._recipe.optimizer.apply(self._trained, self._slots, gradients, info)
    self._cap()
    return loss, self._after_step(carry, step, stream)

  def _cap(self):
    """Takes scales above the largest back to it."""
    largest = self._recipe.objective.max_scale
    for rho in self.variables.untransformed_scale if largest else ():
      rho.assign(tf.minimum(rho, weights_lib.inverse_softplus(largest)))

  def _penalties(self, carry):
    penalty = tf.add_n(self._model.losses) if self._model.losses else 0.0
    for part, kept in zip(self._parts, carry):
      if part.has('loss'):
        penalty += part.loss(weights_lib.flatten(self.variables.mean), kept)
    return penalty

  def _clipped(self, gradients):
    """The gradient of all weights, no longer than it may be."""
    longest = self._recipe.max_gradient_norm
    if not longest:
      return gradients
    factor = tf.minimum(1.0, longest / tf.linalg.global_norm(gradients))
    return [factor * gradient for gradient in gradients]

  def _adjust(self, gradients, carry, step, stream):
    """Weight decay and the parts' say, on the gradient of the mean."""
    decay = self._recipe.weight_decay
    parts = [
      (part, kept)
      for part, kept in zip(self._parts, carry)
      if part.has('gradient')
    ]
    if not decay and not parts:
      return gradients
    variables = self.variables
    num_loc = len(variables.loc)
    num_scale = len(self._trained) - len(variables.mean)
    scales = gradients[num_loc : num_loc + num_scale]
    of_mean = gradients[:num_loc] + gradients[num_loc + num_scale :]
    if decay:
      of_mean = [
        g + decay * v if self._decays(v) else g
        for g, v in zip(of_mean, variables.mean)
      ]
    if parts:
      shapes = [v.shape for v in variables.mean]
      mean = weights_lib.flatten(variables.mean)
      flat = weights_lib.flatten(of_mean)
      for part, kept in parts:
        flat = part.gradient(flat, mean, kept, _step_of(part, step, stream))
      of_mean = weights_lib.unflatten(flat, shapes)
    return of_mean[:num_loc] + scales + of_mean[num_loc:]

  def _decays(self, variable):
    return self._recipe.decay_biases or variable.shape.rank > 1

  def _after_step(self, carry, step, stream):
    carry = list(carry)
    for i, part in enumerate(self._parts):
      if part.has('after_step'):
        mean = weights_lib.flatten(self.variables.mean)
        info = _step_of(part, step, stream)
        mean, carry[i] = part.after_step(mean, carry[i], info)
        if mean is not None:
          weights_lib.assign(self.variables.mean, mean)
    return tuple(carry)


def _step_of(part, step, stream):
  """Returns the step with a seed of this part, the same on every replica."""
  return step._replace(seed=stream(f'part {part.name}'))


def _share(values, replica, replicas):
  # No share is empty as long as there are as many examples as replicas.
  size = tf.shape(values)[0]
  return values[size * replica // replicas : size * (replica + 1) // replicas]
