"""Tests of the penalties of FedProx."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from bfl_tf import clients, weights

_LAYERS = [tf_keras.layers.Dense(2), tf_keras.layers.BatchNormalization()]
LAYOUT = weights.Layout.of(tf_keras.Sequential([tf_keras.Input([1]), *_LAYERS]))
# Kernel, bias, gamma and beta, of two weights each.
MOVED = np.float32([3, 4, 7, 7, 5, 12, 7, 7])


@pytest.mark.parametrize(
  'penalty, expected, gradient',
  [
    ('squared', np.square(MOVED).sum(), 2 * MOVED),
    # |(3, 4)| + |(5, 12)| = 18, without bias and beta.
    ('norms', 18, [3 / 5, 4 / 5, 0, 0, 5 / 13, 12 / 13, 0, 0]),
  ],
)
def test_the_penalty_and_its_gradient_equal_those_computed_by_hand(
  penalty, expected, gradient
):
  part = clients.Proximal(0.7, penalty).with_layout(LAYOUT)
  start = np.linspace(-1, 1, 8, dtype=np.float32)
  vectors = map(tf.constant, (start, start, start[:0], start[:0]))
  carry = part.begin(weights.Weights(*vectors), None, None)
  # At the broadcast, penalty and gradient are 0.
  for moved, share in ((MOVED, 0.35), (0 * MOVED, 0)):
    mean = tf.constant(start + moved)
    with tf.GradientTape() as tape:
      tape.watch(mean)
      loss = part.loss(mean, carry)
    assert float(loss) == pytest.approx(share * expected, rel=1e-5)
    slope = share * np.array(gradient)
    np.testing.assert_allclose(tape.gradient(loss, mean), slope, rtol=1e-5)
