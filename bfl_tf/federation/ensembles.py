"""Predictions of the groups that a server part makes, and of their unions.

Each model predicts once. The prediction of a union of A, C and S is the mixture
of the predictions of its groups, weighted by size. Other groups have no unions.
"""

from collections.abc import Mapping, Sequence
import itertools
from typing import NamedTuple

import numpy as np

from bfl_tf import server, training, weights
from bfl_tf.server import posteriors

Groups = Mapping[str, Sequence[weights.Weights]]


class GroupPredictions(NamedTuple):
  """Predictions of groups of models.

  Attributes:
    unions: Predictions by name: of every non-empty union of A, C and S such as
      `A+C`, of every other group, and of weighted groups such as `wC`. Members
      that are not finite are excluded; without finite members, predictions are
      NaN.
    members: Arrays `[num_members, num_examples]` of the members, by group and
      name; see `Likelihood.member_arrays`.
  """

  unions: dict[str, training.Predictive]
  members: dict[str, dict[str, np.ndarray]]
  rejected: int


def predict(
  workers: Sequence[training.Predictor],
  groups: Groups,
  x: np.ndarray,
  y: np.ndarray,
  seed: np.ndarray,
  num_samples: int,
) -> GroupPredictions:
  """Predicts with every member of every group."""
  likelihood = workers[0].likelihood
  mixtures = training.Mixtures(likelihood, posteriors.betas_of(groups))
  members: dict[str, list[dict[str, np.ndarray]]] = {n: [] for n in groups}
  rejected = 0
  for name, member in training.predict_members(
    workers, groups, x, seed=seed, num_samples=num_samples
  ):
    rejected += not mixtures.add(name, member)
    shares = posteriors.shares_of(groups[name])
    if shares is not None:
      mixtures.add(f'w{name}', member, shares[len(members[name])])
    members[name].append(likelihood.member_arrays(member, y))
  stacked = {
    name: {key: np.stack([each[key] for each in arrays]) for key in arrays[0]}
    for name, arrays in members.items()
  }
  return GroupPredictions(_unions(mixtures, groups, len(y)), stacked, rejected)


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
  return {
    '+'.join(names): mixtures.union(names)
    if any(name in mixtures for name in names)
    else nothing
    for names in chosen
  }
