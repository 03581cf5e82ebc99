"""Tests of the penalties of FedProx."""

import numpy as np
import pytest
import tf_keras
import toys

from bfl_tf import parts, weights
from bfl_tf.methods import fedprox

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
