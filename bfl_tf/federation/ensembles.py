"""The groups of models that a stage made, and every union of them.

One forward pass of each model gives the predictions of all unions: a union's is
the mixture of its groups' by their sizes.
"""

from collections.abc import Iterable, Mapping, Sequence
import itertools

import numpy as np

from bfl_tf import seeds, training
from bfl_tf import weights as weights_lib

Groups = Mapping[str, Sequence[weights_lib.Weights]]


def union_name(groups: Iterable[str]) -> str:
  """Returns `A+C+S`: the names in order."""
  return '+'.join(sorted(groups))


def predict_unions(
  workers: list[training.Worker],
  groups: Groups,
  x: np.ndarray,
  seed: np.ndarray,
  num_samples: int,
) -> dict[str, training.Predictive]:
  """Predicts with every union of groups.

  Args:
    workers: to predict with.
    groups: models by group; none give no unions.
    x: `[num_examples, ...]` raw examples.
    seed: `[2]` int32.
    num_samples: passes of each model, if it is stochastic.

  Returns:
    The prediction of every non-empty subset of the groups, by `union_name`.
  """
  predicted = training.predict_groups(
    workers, groups, x, seed=seeds.child(seed, 1), num_samples=num_samples
  )
  names = sorted(groups)
  return {
    union_name(chosen): training.mix(
      (len(groups[name]), predicted[name]) for name in chosen
    )
    for size in range(1, len(names) + 1)
    for chosen in itertools.combinations(names, size)
  }
