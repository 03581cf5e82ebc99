"""Tests of optimizers against tf_keras and by hand."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from bfl_tf import training

SHAPES = [[3, 2], [4]]
RATES = [0.1, 0.05, 0.2, 0.01, 0.1]


def values(seed, scale=1.0):
  rng = np.random.default_rng(seed)
  return [np.float32(scale * rng.normal(size=shape)) for shape in SHAPES]


def run(optimizer, gradients):
  """Returns the variables after each step."""
  variables = [tf.Variable(value) for value in values(0)]
  slots, history = optimizer.slots(variables), []
  for step, (rate, gradient) in enumerate(zip(RATES, gradients)):
    current = training.Step(
      tf.constant(step), tf.constant(rate), tf.zeros([2], tf.int32), 1.0, 1.0
    )
    optimizer.apply(variables, slots, gradient, current)
    history.append([variable.numpy() for variable in variables])
  return history


@pytest.mark.parametrize('scale', [1.0, 1e-6])
def test_adam_matches_hand_computed_steps_and_tf_keras(scale):
  gradients = [values(seed, scale) for seed in range(1, 6)]
  keras, copies = tf_keras.optimizers.Adam(), list(map(tf.Variable, values(0)))
  variables, m, v = values(0), [0.0, 0.0], [0.0, 0.0]
  history = run(training.Adam(), gradients)
  for t, (rate, gradient) in enumerate(zip(RATES, gradients), start=1):
    m = [0.9 * a + 0.1 * g.astype(np.float64) for a, g in zip(m, gradient)]
    v = [0.999 * a + 0.001 * np.float64(g) ** 2 for a, g in zip(v, gradient)]
    # Kingma & Ba, the last lines of section 2: epsilon hat.
    rate_t = rate * (1 - 0.999**t) ** 0.5 / (1 - 0.9**t)
    variables = [
      x - rate_t * a / (b**0.5 + 1e-7) for x, a, b in zip(variables, m, v)
    ]
    keras.learning_rate = rate
    keras.apply_gradients(zip(map(tf.constant, gradient), copies))
    for by_hand, copy, got in zip(variables, copies, history[t - 1]):
      np.testing.assert_allclose(got, by_hand, rtol=1e-5, atol=2e-6)
      # Keras' second moment grows by 0.001 and is corrected by 1 - 0.999f.
      np.testing.assert_allclose(got, copy, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
  'momentum, nesterov', [(0.0, False), (0.9, False), (0.9, True)]
)
def test_sgd_matches_hand_computed_steps(momentum, nesterov):
  """Nesterov steps are those of PyTorch: g + momentum v."""
  gradients = [values(seed) for seed in range(1, 6)]
  variables, velocity = values(0), [0.0, 0.0]
  for rate, gradient, got in zip(
    RATES, gradients, run(training.SGD(momentum, nesterov), gradients)
  ):
    velocity = [momentum * v + g for v, g in zip(velocity, gradient)]
    steps = velocity
    if nesterov:
      steps = [g + momentum * v for v, g in zip(velocity, gradient)]
    variables = [x - rate * s for x, s in zip(variables, steps)]
    for variable, value in zip(variables, got):
      np.testing.assert_allclose(value, variable, rtol=1e-5, atol=1e-6)
