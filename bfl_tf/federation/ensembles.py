"""Predictions of the groups of models that a stage makes, and of their unions.

Each model predicts once. The prediction of a union of A, C and S is the mixture
of the predictions of its groups, weighted by size. Other groups have no unions.
"""

from collections.abc import Mapping, Sequence
import itertools
from typing import NamedTuple

import numpy as np

from bfl_tf import metrics, server, training, weights
from bfl_tf.server import posteriors

Groups = Mapping[str, Sequence[weights.Weights]]


class Predicted(NamedTuple):
  """Predictions of groups of models.

  Attributes:
    unions: Predictions by name: of every non-empty union of A, C and S such as
      `A+C`, of every other group, and of weighted groups such as `wC`. Members
      that are not finite are excluded; without finite members, predictions are
      NaN.
    confidence: Largest probability, by group: `[num_members, num_examples]`
      float32.
    classes: Predicted classes, by group: `[num_members, num_examples]`
      integers; -1 for a member that is not finite.
    correct: Correct predictions, by group: `[num_members, num_examples]` bool.
    rejected: Number of members that are not finite.
  """

  unions: dict[str, training.Predictive]
  confidence: dict[str, np.ndarray]
  classes: dict[str, np.ndarray]
  correct: dict[str, np.ndarray]
  rejected: int

  def members(self, num_bins: int) -> dict[str, float]:
    """Returns columns of `metrics.csv`: best accuracy, mean ECE and hypothesis
    conflict of each group."""
    scores: dict[str, float] = {'members_rejected': self.rejected}
    for name, correct in self.correct.items():
      scores[f'best_accuracy_{name}'] = float(correct.mean(-1).max())
      errors = [
        metrics.reliability_of(
          confidence, right, num_bins
        ).expected_calibration_error
        for confidence, right in zip(self.confidence[name], correct)
      ]
      scores[f'mean_ece_{name}'] = float(np.mean(errors))
      finite = self.classes[name][(self.classes[name] >= 0).all(-1)]
      if len(finite) > 1:
        conflict = metrics.hypothesis_conflict(finite)
        scores[f'hypothesis_conflict_{name}'] = conflict
    return scores


def predict(
  workers: Sequence[training.Predictor],
  groups: Groups,
  x: np.ndarray,
  y: np.ndarray,
  seed: np.ndarray,
  num_samples: int,
) -> Predicted:
  """Predicts with every member of every group."""
  mixtures = training.Mixtures(posteriors.betas_of(groups))
  confidence: dict[str, list[np.ndarray]] = {name: [] for name in groups}
  classes: dict[str, list[np.ndarray]] = {name: [] for name in groups}
  rejected = 0
  for name, member in training.predict_members(
    workers, groups, x, seed=seed, num_samples=num_samples
  ):
    # A diverged model counts as confident and wrong.
    finite = bool(np.all(np.isfinite(member.probs)))
    if finite:
      mixtures.add(name, member)
      shares = posteriors.shares_of(groups[name])
      if shares is not None:
        mixtures.add(f'w{name}', member, shares[len(confidence[name])])
    rejected += not finite
    confidence[name].append(
      member.probs.max(-1) if finite else np.ones(len(y), np.float32)
    )
    classes[name].append(
      member.probs.argmax(-1) if finite else np.full(len(y), -1)
    )
  predicted = {name: np.stack(of) for name, of in classes.items()}
  return Predicted(
    _unions(mixtures, groups, len(y)),
    {name: np.stack(of) for name, of in confidence.items()},
    predicted,
    {name: of == y for name, of in predicted.items()},
    rejected,
  )


def _unions(mixtures, groups, num_examples) -> dict[str, training.Predictive]:
  """Returns all unions of A, C and S, other groups alone, and weighted
  versions.
  """
  united = [name for name in server.GROUPS if name in groups]
  chosen = [
    names
    for size in range(1, len(united) + 1)
    for names in itertools.combinations(united, size)
  ]
  chosen += [(name,) for name in groups if name not in united]
  chosen += [
    (f'w{name}',)
    for name, group in groups.items()
    if posteriors.shares_of(group) is not None
  ]
  # NaN predictions need one column only.
  nan = np.full(num_examples, np.nan, np.float32)
  nothing = training.Predictive(nan[:, np.newaxis], nan, nan, nan)

  def union(names):
    finite = [name for name in names if name in mixtures]
    return mixtures.union(finite) if finite else nothing

  return {'+'.join(names): union(names) for names in chosen}
