"""Tests of the parts of FedProx, projection and gradient noise."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
import toys

from bfl_tf import parts, training, weights
from bfl_tf.methods import fedprox
from experiments.papers.noniid_techniques import gradient_noise, projection

_LAYERS = [tf_keras.layers.Dense(2), tf_keras.layers.BatchNormalization()]
LAYOUT = weights.Layout.of(tf_keras.Sequential([tf_keras.Input([1]), *_LAYERS]))
# Kernel, bias, gamma and beta, of two weights each.
MOVED = np.float32([3, 4, 7, 7, 5, 12, 7, 7])


@pytest.mark.parametrize(
  'penalty, gradient',
  [
    ('squared', 2 * MOVED),
    # |(3, 4)| = 5 and |(5, 12)| = 13, without bias and beta.
    ('norms', [3 / 5, 4 / 5, 0, 0, 5 / 13, 12 / 13, 0, 0]),
  ],
)
def test_the_gradient_equals_that_computed_by_hand(penalty, gradient):
  part = fedprox.Proximal(0.7, penalty, run=parts.RunFacts(layout=LAYOUT))
  start = np.linspace(-1, 1, 8, dtype=np.float32)
  _, carry = part.begin(toys.context(toys.model(point=start)), None)
  # At the broadcast, the gradient of the penalty is 0.
  for moved, share in ((MOVED, 0.35), (0 * MOVED, 0)):
    found = part.gradient(np.float32([1] * 8), start + moved, carry, None)
    np.testing.assert_allclose(found, 1 + share * np.array(gradient), rtol=1e-5)


@pytest.mark.parametrize(
  'settings, mean, expected',
  [
    # The distance from (1, 1) to (4, 5) is 5; a radius of 2.5 is half of it.
    ((2.5,), [4.0, 5.0], [2.5, 3.0]),
    ((5.0,), [4.0, 5.0], [4.0, 5.0]),
    ((2.5, 'model'), [3.0, 4.0], [1.5, 2.0]),
  ],
)
def test_projected_weights_equal_those_computed_by_hand(
  settings, mean, expected
):
  # The first three of five steps are inside the ball.
  path = [np.ones(2)] * 3 + [mean] * 2
  part = projection.Projection(*settings)
  moved, _, report = toys.visited(part, [1.0, 1.0], path)
  assert moved.tolist() == expected
  fraction = 0.4 if mean != expected else 0
  assert report['hit_fraction'] == pytest.approx(fraction)


def noise(scale, seed):
  step = training.Step(0, 0.1, tf.constant([0, seed]), 9.0)
  part = gradient_noise.GradientNoise(scale)
  return part.gradient(tf.ones([5000]), None, None, step).numpy() - 1


def test_the_noise_has_its_scale_and_depends_on_the_seed():
  first, same, other = (noise(0.1, seed) for seed in (0, 0, 1))
  assert np.array_equal(first, same) and not np.any(first == other)
  # Five standard errors of 5000 draws.
  assert first.var() == pytest.approx(0.01, rel=5 * np.sqrt(2 / 5000))
  assert abs(first.mean()) < 5 * 0.1 / np.sqrt(5000)
  assert not noise(0.0, 0).any()
