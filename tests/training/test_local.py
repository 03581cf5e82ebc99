"""Tests of local training against NumPy."""

import numpy as np
import pytest
from scipy import special
import tensorflow as tf
from tensorflow_probability import distributions as tfd
import tf_keras
import toys

from bfl_tf import training

LABELS = {row.tobytes(): label for row, label in zip(*toys.TRAIN[:2])}


class Recorder(tf_keras.layers.Layer):
  """Records every batch."""

  def __init__(self):
    super().__init__()
    self.batches = []

  def call(self, x):
    tf.numpy_function(lambda batch: self.batches.append(batch), [x], [])
    return x


def recorded(**settings):
  """Returns a worker on a softmax regression, and the list of its batches."""
  recorder = Recorder()

  def build():
    inputs = tf_keras.Input((4,))
    logits = tf_keras.layers.Dense(3)(recorder(inputs))
    return tf_keras.Model(inputs, logits)

  return toys.worker(build, **settings), recorder.batches


def reference(begin, batches, rates, momentum=0.0, decay=0.0, longest=np.inf):
  """Runs SGD in float64; returns the weights and the losses of the batches."""
  point = begin.point.astype(np.float64)
  velocity, losses = 0.0, []
  for x, rate in zip(batches, rates, strict=True):
    x = x.astype(np.float64)
    y = np.array([LABELS[np.float32(row).tobytes()] for row in x])
    probs = special.softmax(x @ point[:12].reshape(4, 3) + point[12:], -1)
    losses.append(-np.log(probs[np.arange(len(y)), y]).mean())
    error = (probs - np.eye(3)[y]) / len(y)
    gradient = np.concatenate([(x.T @ error).ravel(), error.sum(0)])
    gradient *= min(1.0, longest / np.linalg.norm(gradient))
    velocity = momentum * velocity + gradient + decay * point
    point = point - rate * velocity
  return point, losses


RATES = 0.2 * 0.9 ** np.arange(16)


@pytest.mark.parametrize(
  'momentum, rates, settings',
  [
    (0.0, np.full(16, 0.2), {}),
    (0.9, np.full(16, 0.2), {'weight_decay': 0.1, 'decay_biases': False}),
    (0.5, RATES, {'weight_decay': 0.1}),
  ],
)
def test_sgd_matches_the_numpy_reference(momentum, rates, settings):
  worker, batches = recorded(optimizer=training.SGD(momentum), **settings)
  begin = toys.start(worker)
  result = worker.train(toys.task(begin, epochs=4, rate=rates))

  # The last partial batch is kept; each epoch takes every example once.
  assert [len(batch) for batch in batches] == [16, 16, 16, 2] * 4
  epochs = [np.concatenate(batches[i : i + 4]) for i in range(0, 16, 4)]
  for epoch in epochs:
    assert sorted(epoch.tolist()) == sorted(toys.TRAIN.x[:50].tolist())
  assert len({epoch.tobytes() for epoch in epochs}) == 4

  decay = np.full(15, settings.get('weight_decay', 0.0))
  decay[12:] *= settings.get('decay_biases', True)
  point, losses = reference(begin, batches, rates, momentum, decay)
  np.testing.assert_allclose(result.model.point, point, rtol=2e-5, atol=2e-6)
  assert result.trace.steps == 16
  assert result.trace.sum_rates == pytest.approx(rates.sum(), rel=1e-5)
  assert result.trace.loss == pytest.approx(np.mean(losses), rel=1e-5)


def test_the_gradient_is_clipped_as_one_vector_before_weight_decay():
  settings = {'optimizer': training.SGD(0.9), 'weight_decay': 0.5}
  worker, batches = recorded(max_gradient_norm=0.05, **settings)
  begin = toys.start(worker)
  clipped = worker.train(toys.task(begin)).model.point
  point, _ = reference(begin, batches, [0.1] * 4, 0.9, 0.5, 0.05)
  np.testing.assert_allclose(clipped, point, rtol=2e-5, atol=2e-6)
  # Shorter gradients are unchanged, bit for bit.
  plain, free = (
    toys.worker(**settings, **more).train(toys.task(begin)).model
    for more in ({}, {'max_gradient_norm': 1e3})
  )
  assert toys.same(plain, free)


def test_first_step_resumes_the_optimizer():
  worker, batches = recorded(optimizer=training.SGD(0.9))
  begin = toys.start(worker)
  half = worker.train(toys.task(begin, epochs=2))
  step = np.int32(half.trace.steps)
  whole = worker.train(toys.task(half.model, seed=1, first_step=step))
  point, losses = reference(begin, batches, [0.1] * 12, 0.9)
  np.testing.assert_allclose(whole.model.point, point, rtol=2e-5, atol=2e-6)
  assert whole.trace.steps == 4
  assert whole.trace.loss == pytest.approx(np.mean(losses[8:]), rel=1e-5)


@pytest.fixture(scope='module')
def variational():
  """Returns full-batch workers; the prior of one is the broadcast posterior."""
  return [
    toys.worker(
      variant='flipout',
      batch_size=50,
      inference=training.Inference(training.LayerObjective(**settings)),
    )
    for settings in (
      {'update_prior': True},
      {'prior_scale': 0.7},
      {'prior_scale': 0.7, 'kl_reduction': 'mean'},
      {'prior_scale': 0.7, 'kl_reduction': 'tied'},
    )
  ]


# Number of weights in the tensor of each weight.
KERNEL_AND_BIAS = np.float32([12] * 12 + [3] * 3)


@pytest.mark.parametrize(
  'place, weight, num_examples, others',
  [(1, 1, 50, 0), (1, 0.25, 30, 170), (2, 1, 50, 0), (3, 1, 50, 0)],
)
def test_the_kl_divergence_and_its_gradient_match_tfp(
  variational, place, weight, num_examples, others
):
  workers = variational[0], variational[place]
  by_broadcast = variational[0]
  begin = toys.start(by_broadcast)
  rng = np.random.default_rng(1)
  own, factor = rng.uniform(0.3, 1.5, [2, 15]).astype(np.float32)
  begin = begin._replace(scale=own, factor=factor[np.newaxis])
  task = toys.task(
    begin,
    range(num_examples),
    rate=0.5,
    batch_size=50,
    other_examples=np.int32(others),
    kl_weight=np.float32(weight),
  )
  likelihood, both = (worker.train(task) for worker in workers)

  # At step 0, posterior and prior are equal, so KL and its gradient are 0.
  loc, scale = tf.Variable(begin.loc), tf.Variable(np.hypot(own, factor))
  with tf.GradientTape() as tape:
    centre = loc if place == 3 else tf.zeros(15)
    prior = tfd.Normal(centre, tf.fill([15], 0.7))
    each = tfd.kl_divergence(tfd.Normal(loc, scale), prior)
    each /= KERNEL_AND_BIAS if place == 2 else 1
    kl = tf.reduce_sum(each) * weight / (num_examples + others)
  of_loc, of_scale = tape.gradient(kl, [loc, scale])
  assert both.trace.loss - likelihood.trace.loss == pytest.approx(
    float(kl), rel=1e-5
  )
  # The noise is the same, so the difference of two steps is that of the KL.
  moved = (likelihood.model.loc - both.model.loc) / 0.5
  np.testing.assert_allclose(moved, of_loc, rtol=1e-4, atol=1e-6)
  rho, rho_kl = (
    np.log(np.expm1(r.model.scale.astype(np.float64)))
    for r in (likelihood, both)
  )
  slope = -np.expm1(-np.hypot(own, factor))  # The derivative of softplus.
  moved = (rho - rho_kl) / 0.5
  np.testing.assert_allclose(moved, of_scale * slope, rtol=1e-4, atol=1e-5)


def test_no_scale_exceeds_the_maximum():
  objective = training.LayerObjective(max_scale=0.2)
  worker = toys.worker(
    variant='flipout', inference=training.Inference(objective)
  )
  scale = np.linspace(0.01, 0.3, 15, dtype=np.float32)
  # A rule may give such scales; the prior increases all of them.
  begin = toys.start(worker)._replace(scale=scale)
  for epochs in (0, 1, 20):
    found = worker.train(toys.task(begin, epochs=epochs, rate=0.3)).model.scale
    assert found.max() <= np.float32(0.2) * (1 + 1e-6)
  assert found[-1] == pytest.approx(0.2) and found.min() > 0.01


def test_earlier_tasks_of_a_worker_do_not_change_the_result():
  worker, fresh = (
    toys.worker(variant='flipout', optimizer=training.Adam()) for _ in range(2)
  )
  begin = toys.start(worker)
  task = toys.task(begin, range(50, 90), epochs=2)
  first = worker.train(task)
  # These tasks have other clients, rounds, epochs and rates.
  other = worker.train(toys.task(first.model, range(50), 3, 0.01, seed=1))
  worker.train(toys.task(other.model, range(7), 1, 0.5, seed=2))
  assert toys.same(first, worker.train(task), fresh.train(task))


def test_augmentation_uses_the_specified_padding(padding=2):
  recorder = Recorder()

  def build():
    inputs = tf_keras.Input((6, 6, 1))
    x = tf_keras.layers.Flatten()(recorder(inputs))
    return tf_keras.Model(inputs, tf_keras.layers.Dense(2)(x))

  data = training.Data(
    np.ones([200, 6, 6, 1], np.uint8), np.arange(200) % 2, *np.eye(2, 1)[::-1]
  )
  settings = {'augment': True, 'augment_padding': padding}
  worker = toys.worker(build, batch_size=200, data=data, **settings)
  worker.train(toys.task(toys.start(worker), range(200), batch_size=200))
  (batch,) = recorder.batches
  # Images of ones have a frame of zeros, so a crop shifted by n lacks n rows.
  rows = np.any(batch, axis=(2, 3)).sum(1)
  columns = np.any(batch, axis=(1, 3)).sum(1)
  assert set(rows) == set(columns) == set(range(6 - padding, 7))


def test_moving_statistics_are_updated_in_the_buffers():
  worker = toys.worker(toys.normalized_inputs, batch_size=50)
  begin = toys.start(worker)._replace(buffers=np.arange(8, dtype=np.float32))
  got = worker.train(toys.task(begin, batch_size=50)).model.buffers
  x = toys.TRAIN.x[:50]
  batch = np.concatenate([x.mean(0), x.var(0)])
  np.testing.assert_allclose(got, 0.9 * begin.buffers + 0.1 * batch, rtol=1e-5)
