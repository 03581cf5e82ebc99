"""Tests of IVON against its formulas."""

import numpy as np
import pytest
import tensorflow as tf
import toys

from bfl_tf import seeds, training
from bfl_tf.methods import fedprox

STEPS, RATE = 12, 0.05
IVON = training.IVON(prior_scale=2.0, temperature=0.5, beta_1=0.8, beta_2=0.95)
PRIOR = 0.0, IVON.prior_scale**-2


def printed(m, scale, normals, gradient, num_examples, eta=PRIOR, mu=0.0):
  """Returns mean and scale by Algorithm 1 as printed, in float64.

  FedProx adds mu (m - start) to the gradient.
  """
  start = m
  size = num_examples / IVON.temperature
  shift, d = np.asarray(eta, np.float64) / size
  b1, b2 = IVON.beta_1, IVON.beta_2
  g, h = 0.0, 1 / (size * scale.astype(np.float64) ** 2) - d
  for t, normal in enumerate(normals, start=1):
    theta = m + normal / np.sqrt(size * (h + d))
    g_hat = gradient(theta) + mu * (m - start)
    h_hat = g_hat * (theta - m) * size * (h + d)
    g = b1 * g + (1 - b1) * g_hat
    more = (1 - b2) ** 2 * (h - h_hat) ** 2 / (2 * (h + d))
    h = b2 * h + (1 - b2) * h_hat + more
    m = m - RATE * (g / (1 - b1**t) + d * m - shift) / (h + d)
  return m, 1 / np.sqrt(size * (h + d))


def drawn(seed, *shapes):
  """Yields the random draws of each step of the training loop."""
  for step in range(STEPS):
    stream = seeds.Stream(seeds.Stream(seed)('step', step))('optimizer')
    names = [seeds.Stream(stream)('sample', i) for i in range(len(shapes))]
    draws = map(tf.random.stateless_normal, shapes, names)
    yield np.concatenate([np.ravel(draw) for draw in draws])


def walk(optimizer, gradient, mean, scale, rate, steps, size, eta):
  """Returns the variable and the scale after `steps` on one tensor."""
  variable, stream = tf.Variable(mean), seeds.Stream([3, 4])
  slots = optimizer.slots([variable])
  optimizer.begin(slots, [scale])

  @tf.function
  def run():
    for index in tf.range(steps):
      seed = seeds.Stream(stream('step', index))('optimizer')
      step = training.Step(index, rate, seed, size, size, prior=[eta])
      kept = tf.identity(variable)
      optimizer.sample([variable], slots, step)
      found = gradient(variable)
      variable.assign(kept)
      optimizer.apply([variable], slots, [found], step)

  run()
  return variable.numpy(), optimizer.scales(slots, [], None)[0].numpy()


# The prior of a client part may have any mean and a negative precision.
@pytest.mark.parametrize(
  'eta', [PRIOR, np.float32([[1, -2, 0, 3], [2, 0.5, -0.2, 1]])]
)
def test_steps_on_a_quadratic_match_the_printed_algorithm(eta):
  root = np.float32(np.random.default_rng(0).normal(size=[6, 4]))
  curvature, centre = root.T @ root / 6, np.float32([1, -1, 0, 2])

  def slope(w):
    return tf.linalg.matvec(tf.cast(curvature, w.dtype), w - centre)

  begin = np.zeros(4, np.float32), np.full(4, 0.3, np.float32)
  size = 20 / IVON.temperature
  found = walk(IVON, slope, *begin, RATE, STEPS, size, eta)
  expected = printed(
    *begin, drawn([3, 4], [4]), lambda w: curvature @ (w - centre), 20, eta
  )
  np.testing.assert_allclose(found, expected, rtol=2e-5)


def logistic(**settings):
  """Returns a worker on fifty blobs in one batch, and its task."""
  worker = toys.worker(
    optimizer=IVON, inference=toys.inference(IVON), batch_size=50, **settings,
  )  # fmt: skip
  begin = toys.start(worker)
  begin = begin._replace(scale=np.linspace(0.1, 0.5, 15, dtype=np.float32))
  weight = IVON.kl_weight(0)
  return worker, toys.task(
    begin,
    range(50),
    epochs=STEPS,
    rate=RATE,
    batch_size=50,
    kl_weight=weight,
  )


def test_steps_on_a_logistic_regression_match_the_printed_algorithm(mu=2.0):
  x, y = toys.DATA.x[:50].astype(np.float64), np.eye(3)[toys.DATA.y[:50]]

  def gradient(w):
    p = np.exp(x @ w[:12].reshape(4, 3) + w[12:])
    error = (p / p.sum(1, keepdims=True) - y) / 50
    return np.concatenate([(x.T @ error).ravel(), error.sum(0)])

  parts = {'parts': (fedprox.Proximal(mu),)}
  worker, task = logistic(**parts)
  found, normals = worker.train(task).model, drawn(task.seed, [4, 3], [3])
  mean, scale = printed(*task.start[:2], normals, gradient, 50, mu=mu)
  # Two replicas have the same sample.
  (mirrored,) = training.strategies(2, 'mirrored')
  for model in (
    found,
    logistic(strategy=mirrored, **parts)[0].train(task).model,
  ):
    np.testing.assert_allclose(model.loc, mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.scale, scale, rtol=1e-4)
  # The slots do not contain values of another client.
  worker.train(task._replace(seed=seeds.named(1, 'test')))
  assert toys.same(worker.train(task).model, found)
