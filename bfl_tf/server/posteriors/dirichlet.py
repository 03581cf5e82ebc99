"""FedBE's distribution over convex combinations of the clients' models.

Notation (FedBE, Eq. 7): gamma ~ Dir(alpha 1),
w = sum_i gamma_i |D_i| w_i / sum_i gamma_i |D_i|.

References:
  H. Chen, W. Chao. FedBE: Making Bayesian model ensemble applicable to
  federated learning. ICLR 2021, section 3.3.
"""

from __future__ import annotations

from collections.abc import Sequence
import functools

import numpy as np

from bfl_tf.startup import tf, tfd


class SimplexMixture:
  """Eq. 7 over flat weights, with the `sample` method of TFP."""

  def __init__(
    self,
    members: Sequence[np.ndarray],
    shares: np.ndarray,
    concentration: float,
  ):
    """Creates the distribution.

    Args:
      shares: `[num_members]`, positive weights |D_i|.
      concentration: Concentration alpha. For small alpha, samples are close to
        one member; for large alpha, to the weighted average.
    """
    self._members = members
    self._shares = np.asarray(shares, np.float32)
    self._gamma = tfd.Dirichlet(
      np.full(len(self._members), concentration, np.float32)
    )

  def sample_coefficients(self, sample_shape, seed) -> tf.Tensor:
    """Draws gamma, `sample_shape + [num_members]`."""
    return self._gamma.sample(sample_shape, seed=seed)

  def combine(self, gamma: tf.Tensor) -> tf.Tensor:
    """Returns the models `[..., num_values]` at gamma `[..., num_members]`."""
    weights = gamma * self._shares
    weights /= tf.reduce_sum(weights, -1, keepdims=True)
    parts = (
      weights[..., k, tf.newaxis] * member
      for k, member in enumerate(self._members)
    )
    # A generator saves memory, because each part is as large as the result.
    return functools.reduce(tf.add, parts)

  def sample(self, sample_shape=(), seed=None) -> tf.Tensor:
    """Draws models, `sample_shape + [num_values]`."""
    return self.combine(self.sample_coefficients(sample_shape, seed))
