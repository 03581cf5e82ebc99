"""SWAG: a Gaussian over all weights from the steps of SGD (FL-SWAG, alg. 1).

Notation (FL-SWAG, section 4.2): theta_i are the weights at the end of the i-th
of n periods, theta_SWA is their mean, and theta_bar_i the mean of the first i.
  Sigma_diag = 1/n sum_i (theta_i - theta_SWA)^2
  D          the last r columns theta_i - theta_bar_i
  Sigma      = Sigma_diag / 2 + D D^T / (2 (r - 1)); at r = 0 Sigma_diag

The average starts at the first collection, not at the broadcast as printed.
Squared deviations are accumulated by Welford's method. The average alone is
SWA.

References:
  W. Maddox et al. A simple baseline for Bayesian uncertainty in deep learning.
  NeurIPS 2019.
  P. Izmailov et al. Averaging weights leads to wider optima and better
  generalization. UAI 2018.
  M. Makni. Deriving FL-SWAG as a one-shot method. 2022, sections 4 and 5.
"""

import dataclasses
import math
from typing import Any, NamedTuple

from bfl_tf.declare.settings import setting
from bfl_tf.methods.method import Method
from bfl_tf.parts import Local, Sent, Start
from bfl_tf.server import pooling
from bfl_tf.startup import tf


class WeightStatistics(NamedTuple):
  """Statistics of the collected weights.

  Attributes:
    square: `[num_trainable]`, sum of squared deviations; empty if no scale is
      fitted.
    columns: `[rank, num_trainable]`, the last deviations, from old to new.
  """

  count: Any
  average: Any
  square: Any
  columns: Any


@dataclasses.dataclass(frozen=True)
class Swag(Local):
  """Collects the weights at the end of each period; training is unchanged."""

  start: int = setting(
    0, 'Number of steps before the first weights are collected.', ge=0
  )
  period: int = setting(25, 'Number of steps between two collections.', ge=1)
  rank: int = setting(
    20,
    'Number of deviations in the low-rank factor: 0 for a diagonal '
    'covariance, otherwise at least 2.',
    ge=0,
  )
  burn_in: float = setting(
    0.0,
    "Fraction of a client's steps before the first weights are collected.",
    ge=0,
    lt=1,
  )
  min_scale: float = setting(
    1e-6,
    "Lower bound on a client's standard deviations; "
    '`swag_floored_fraction` reports how many weights reach it.',
    gt=0,
  )
  fits_scale: bool = setting(
    True,
    'Fit standard deviations; if false, only average the weights '
    '(SWA), with any variant.',
  )

  name = 'swag'

  def __post_init__(self):
    # A covariance is divided by rank - 1.
    if self.rank == 1 or (self.rank and not self.fits_scale):
      raise ValueError(
        f'--swag.rank={self.rank} must be 0, or at least 2 with a fitted scale '
        '(--swag.fits_scale).'
      )

  @property
  def fits_posterior(self) -> bool:
    return self.fits_scale

  def collections(self, num_steps: int) -> int:
    """Returns the number of collections in a training of this length."""
    first = max(self.start, math.floor(self.burn_in * num_steps))
    return max(0, num_steps // self.period - first // self.period)

  def check(self, facts):
    least = max(2, self.rank) if self.fits_scale else 1
    for client, steps, _ in facts.trainings:
      count = self.collections(steps)
      facts.need(
        count >= least,
        f'at least {least} sets of weights, and collects {count} in the '
        f'{steps} steps of client {client}: raise --local_epochs, or lower '
        '--swag.period or --swag.rank',
      )

  def begin(self, ctx, memory):
    zeros = tf.zeros_like(ctx.broadcast.mean)
    columns = tf.tile(zeros[tf.newaxis], [self.rank, 1])
    square = zeros if self.fits_scale else tf.zeros([0], zeros.dtype)
    return Start(ctx.start, WeightStatistics(0.0, zeros, square, columns))

  def after(self, mean, carry, step):
    taken = step.index + 1
    ends = (taken > self._first(step)) & (taken % self.period == 0)
    carry = carry._replace(count=carry.count + tf.cast(ends, tf.float32))
    return mean, tf.cond(
      ends, lambda: self._collect(mean, carry), lambda: carry
    )

  def _first(self, step):
    if not self.burn_in:
      return self.start
    steps = tf.cast(step.num_steps, tf.float64)
    return tf.maximum(
      self.start, tf.cast(tf.floor(self.burn_in * steps), tf.int32)
    )

  def _collect(self, mean, carry):
    count, before, square, columns = carry
    average = before + (mean - before) / count
    deviation = mean - average
    if self.fits_scale:
      square += (mean - before) * deviation
    if self.rank:
      columns = tf.concat([columns[1:], deviation[tf.newaxis]], 0)
    return WeightStatistics(count, average, square, columns)

  def end(self, model, carry, trace):
    model = model.replace_mean(carry.average)
    if not self.fits_scale:
      return Sent(model)
    variance = carry.square / tf.maximum(carry.count, 1.0)
    scale = tf.sqrt(variance / 2 if self.rank else variance)
    floored = tf.cast(scale < self.min_scale, tf.float32)
    model = model._replace(
      scale=tf.maximum(scale, self.min_scale),
      factor=carry.columns / math.sqrt(max(1, 2 * (self.rank - 1))),
    )
    report = {
      'floored_fraction': tf.reduce_mean(floored),
      'collections': carry.count,
    }
    return Sent(model, report=report)


swag = Method(
  (Swag(burn_in=0.5, period=1, rank=5),),
  help='SWAG (Maddox et al. 2019) on each client in every round, averaged.',
)

fl_swag = Method(
  (
    Swag(burn_in=0.5, period=2, rank=10, min_scale=0.003),
    pooling.Product(),
  ),
  needs={'num_rounds': 1},
  help="FL-SWAG (Makni 2022): one round; the product of the clients' SWAG "
  'posteriors is sampled for predictions.',
)
