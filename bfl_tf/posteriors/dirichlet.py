"""FedBE's distribution over convex combinations of the clients' models.

Notation (FedBE, Eq. 7): gamma ~ Dir(alpha 1),
w = sum_i gamma_i |D_i| w_i / sum_i gamma_i |D_i|.

References:
  H. Chen, W. Chao. FedBE: Making Bayesian model ensemble applicable to
  federated learning. ICLR 2021, section 3.3.
"""

from collections.abc import Sequence
import functools

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from tensorflow_probability import distributions as tfd


class SimplexMixture(tfd.Distribution):
  """Eq. 7 over flat weights, as a tfp distribution; keeps hold of `members`."""

  def __init__(
    self,
    members: Sequence[np.ndarray],
    shares: np.ndarray,
    concentration: float,
  ):
    """Makes the distribution.

    Args:
      members: `num_members` float32 vectors `[num_values]`.
      shares: `[num_members]`, positive: |D_i|.
      concentration: alpha; towards 0 samples are members, towards infinity
        their weighted average.
    """
    parameters = dict(locals())
    self._members = list(members)
    self._shares = np.asarray(shares, np.float32)
    self._gamma = tfd.Dirichlet(
      np.full(len(self._members), concentration, np.float32)
    )
    super().__init__(
      dtype=tf.float32,
      reparameterization_type=tfp.distributions.NOT_REPARAMETERIZED,
      validate_args=False,
      allow_nan_stats=True,
      parameters=parameters,
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
    # One by one: a part is as large as the result.
    return functools.reduce(tf.add, parts)

  def _batch_shape(self):
    return tf.TensorShape([])

  def _event_shape(self):
    return tf.TensorShape([self._members[0].size])

  def _sample_n(self, n, seed=None):
    return self.combine(self.sample_coefficients([n], seed))
