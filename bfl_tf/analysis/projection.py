"""Personalized posteriors by projection.

The global posterior q_g is projected onto the ball of a divergence D around the
posterior q_k of site k. The projection is the barycenter of both posteriors,
argmin_q (1 - w) D(q_g, q) + w D(q_k, q), which a pooling rule returns. The
weight w in [0, 1] stands for the radius: 0 gives q_g and 1 gives q_k. In the
notation of the paper, w = lambda / (1 + lambda).

References:
  N. Jamoussi et al. Cost-free personalization via information-geometric
  projection in Bayesian federated learning. arXiv:2509.10132.
"""

import numpy as np

from bfl_tf import data, weights
from bfl_tf.analysis import site_statistics
from bfl_tf.analysis.model import Trained
from bfl_tf.server import pooling

# Rules that return a barycenter: of the squared Wasserstein-2 distance,
# KL[q, q_k], KL[q_k, q], and the squared distance of the weights.
RULES = ('wasserstein', 'llp', 'lp', 'nwa')
_WEIGHTS = np.linspace(0, 1, 11)


def barycenter(
  rule: str,
  global_posterior: weights.Weights,
  own: weights.Weights,
  weight: float,
) -> weights.Weights:
  """Returns the barycenter of the global posterior and a site's own."""
  if weight in (0, 1):
    return own if weight else global_posterior
  weighted = [(global_posterior, 1 - weight), (own, weight)]
  return pooling.pool_models(pooling.rule_of(rule), weighted)


def project(
  trained: Trained, own: weights.Weights, rule: str, split: data.Split
) -> tuple[weights.Weights, float]:
  """Chooses the weight with the largest likelihood of held-out examples.

  Returns:
    The barycenter and its weight, a multiple of 0.1.
  """

  def nll(weight):
    model = barycenter(rule, trained.weights, own, weight)
    prediction = trained.replace(model).predict(split.x)
    return site_statistics.of(prediction, split.y, None).row(None)['nll']

  best = float(min(_WEIGHTS, key=nll))
  return barycenter(rule, trained.weights, own, best), best
