"""Tests of SGLD and pSGLD by the variance on a Gaussian."""

import numpy as np
import pytest
import tensorflow as tf

from bfl_tf import seeds, training
from bfl_tf.training import langevin

# The energy is w^2 / (2 s^2). Each of many w is a chain.
CHAINS, STEPS, NUM_EXAMPLES = 20_000, 400, 50
SCALES = np.array([0.5, 2.0], np.float32)


def walk(optimizer, rate, slot=None):
  """Returns the final values of the chains, `[2, CHAINS]`."""
  start = tf.random.stateless_normal([2, CHAINS], [1, 2])
  variable = tf.Variable(start * SCALES[:, np.newaxis])
  slots = optimizer.slots([variable])
  for made in slots:
    made.assign(tf.zeros_like(made) + slot)
  stream = seeds.Stream([3, 4])

  @tf.function
  def run():
    for index in tf.range(STEPS):
      gradient = variable / SCALES[:, np.newaxis] ** 2 / NUM_EXAMPLES
      step = training.Step(
        index, rate, stream('step', index), tf.constant(float(NUM_EXAMPLES))
      )
      optimizer.apply([variable], slots, [gradient], step)

  run()
  return variable.numpy().astype(np.float64)


def assert_variance(found, expected):
  error = expected * np.sqrt(2 / CHAINS)
  assert np.all(np.abs(found.var(-1) - expected) < 5 * error)
  assert np.all(np.abs(found.mean(-1)) < 5 * np.sqrt(expected / CHAINS))


@pytest.mark.parametrize('temperature', [1.0, 0.25])
def test_sgld_samples_have_the_variance_of_the_posterior(temperature):
  rate = 2.0
  curvature = 1 / (SCALES**2 * NUM_EXAMPLES)
  # This solves v = (1 - h c)^2 v + 2 h T / N exactly.
  expected = temperature * SCALES**2 / (1 - rate * curvature / 2)
  assert_variance(walk(training.SGLD(temperature), rate), expected)


def test_psgld_samples_have_the_variance_of_the_posterior(monkeypatch):
  # The preconditioner stays where it is.
  monkeypatch.setattr(langevin, '_DECAY', 1 - 1e-7)
  rate, damping = 0.01, 1e-5
  # In equilibrium, V is the second moment of the gradients.
  settled = (1 / SCALES / NUM_EXAMPLES)[:, np.newaxis]
  optimizer = training.PSGLD()
  steps = rate / (damping + settled[:, 0])
  curvature = 1 / (SCALES**2 * NUM_EXAMPLES)
  expected = SCALES**2 / (1 - steps * curvature / 2)
  assert_variance(walk(optimizer, rate, settled**2), expected)


def test_every_variable_and_seed_has_its_own_noise():
  def moved(seed):
    pair = [tf.Variable(tf.zeros([50])) for _ in range(2)]
    step = training.Step(
      tf.constant(0), tf.constant(0.5), tf.constant(seed), tf.constant(9.0)
    )
    training.SGLD().apply(pair, [], [tf.zeros([50])] * 2, step)
    return [v.numpy() for v in pair]

  first, second = moved([1, 2])
  again, _ = moved([1, 2])
  other, _ = moved([1, 3])
  assert np.array_equal(first, again)
  assert not np.any(np.isin(first, np.concatenate([second, other])))
