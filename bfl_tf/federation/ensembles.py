"""The groups of models that a stage made, and the unions of A, C and S.

One forward pass of each model gives the predictions of all unions: a union's is
the mixture of its groups' by their sizes. Other groups stand alone.
"""

from collections.abc import Iterable, Mapping, Sequence
import itertools

import numpy as np

from bfl_tf import seeds, server, training
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
    By `union_name`, the prediction of every non-empty subset of A, C and S,
    and of every other group.
  """
  predicted = training.predict_groups(
    workers, groups, x, seed=seeds.child(seed, 1), num_samples=num_samples
  )
  united = [name for name in server.GROUPS if name in groups]
  alone = {name: p for name, p in predicted.items() if name not in united}
  return alone | {
    union_name(chosen): training.mix(
      (len(groups[name]), predicted[name]) for name in chosen
    )
    for size in range(1, len(united) + 1)
    for chosen in itertools.combinations(united, size)
  }
