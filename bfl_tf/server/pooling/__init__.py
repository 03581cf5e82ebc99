"""Pooling rules, client weightings and a standalone pooling function."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from bfl_tf import parts, statistics
from bfl_tf import weights as weights_lib
from bfl_tf.declare import registry
from bfl_tf.server.pooling import robust, rules
from bfl_tf.server.pooling.product import Product
from bfl_tf.server.pooling.rules import (
  Conflation,
  DistributedWeightConsolidation,
  LinearPooling,
  LogLinearPooling,
  NaiveWeightedAverage,
  Rule,
  WeightedConflation,
  WeightedSum,
)
from bfl_tf.server.pooling.weightings import Equal, Weighting, WEIGHTINGS
from bfl_tf.startup import tfd

# `auto` is the rule of a client part that has one, or else `nwa`.
RULES: dict[str, Any] = {
  'auto': rules.NaiveWeightedAverage,
  **rules.ELEMENTWISE,
  'product': Product,
  **robust.ROBUST,
}


def pool(
  rule: str | parts.Pool,
  posteriors: Iterable[tfd.Distribution],
  weights: Iterable[float] | None = None,
  prior: tfd.Distribution | None = None,
) -> tfd.Distribution:
  """Pools posteriors over `R^P` into one, with one of them in memory at a time.

  Args:
    rule: A name in `RULES`, or a rule.
    posteriors: `tfd.MultivariateNormalDiag`s,
      `tfd.MultivariateNormalDiagPlusLowRankCovariance`s or, for deterministic
      models, `tfd.VectorDeterministic`s; an iterable may stream them.
    weights: One positive number per posterior, with any sum; equal if None.
    prior: Distribution that the clients started from. `dwc` divides it out. For
      other rules it is the center of second moments; None uses the first
      posterior.

  Returns:
    The pooled distribution, float32. It is deterministic for deterministic
    models, otherwise a Gaussian with scales of at least 1e-6. It has a factor
    only if the rule returns one.

  Raises:
    ValueError: Posteriors differ in size; weights are invalid, or the rule
      takes none; `dwc` has no prior; or the factors for `product` overlap and
      are about 1e5 times their scales.

  References:
    J. Fischer et al. arXiv:2403.15263, Eq. 10 to 17.
  """
  if isinstance(rule, str):
    return pool(rule_of(rule), posteriors, weights, prior)
  if weights is not None and not rule.takes_weights:
    raise ValueError(f'{type(rule).__name__} takes no weights.')
  if isinstance(rule, DistributedWeightConsolidation) and prior is None:
    raise ValueError(
      f'{type(rule).__name__} needs the prior that the clients started from: '
      'pass prior=.'
    )
  reference = None if prior is None else _as_weights(prior)
  models = (
    (_as_weights(posterior), weight)
    for posterior, weight in _paired(posteriors, weights)
  )
  return weights_lib.distribution(pool_models(rule, models, reference))


def pool_models(
  rule: parts.Pool,
  models: Iterable[tuple[weights_lib.Weights, float]],
  reference: weights_lib.Weights | None = None,
) -> weights_lib.Weights:
  """Pools models with their weights; arguments as in `pool`."""
  sums = None
  for client, (model, weight) in enumerate(models):
    reference = model if reference is None else reference
    if [v.shape for v in model[:3]] != [v.shape for v in reference[:3]]:
      raise ValueError('posteriors and prior must be of one kind and one size.')
    update = statistics.ClientUpdate(client, 1, model)
    share = statistics.collected(rule, update, weight, reference)
    sums = share if sums is None else statistics.merge(sums, share)
  assert sums and reference, 'There are no posteriors.'
  ctx = parts.ServerContext(reference)
  return rule.step(reference, statistics.values(sums), None, ctx).model


def rule_of(name: str, **settings: Any) -> Any:
  """Creates a rule of `RULES` outside of a run."""
  return registry.resolve('pooling', name, RULES)(**settings)


def _paired(posteriors, weights):
  if weights is None:
    yield from ((posterior, 1.0) for posterior in posteriors)
    return
  for posterior, weight in zip(posteriors, weights, strict=True):
    # Rules square weights, which would overflow or underflow in float64.
    if not 1e-100 < weight < 1e100:
      raise ValueError(
        f'weights must be positive and below 1e100, got {weight!r}.'
      )
    yield posterior, float(weight)


def _as_weights(posterior: tfd.Distribution) -> weights_lib.Weights:
  none = np.zeros([0], np.float32)
  mean = np.asarray(posterior.mean(), np.float32)
  factor = None
  if isinstance(posterior, tfd.VectorDeterministic):
    return weights_lib.Weights(none, none, mean, none)
  if isinstance(posterior, tfd.MultivariateNormalDiag):
    scale = np.asarray(posterior.stddev(), np.float32)
  else:  # TFP's diagonal is a variance.
    low_rank: Any = posterior
    scale = np.sqrt(np.asarray(low_rank.cov_diag_factor, np.float32))
    factor = np.asarray(low_rank.cov_perturb_factor, np.float32).T
  if not np.all(scale > 0):
    raise ValueError('posteriors must have positive standard deviations.')
  return weights_lib.Weights(mean, scale, none, none, factor)
