"""The state of a run between rounds, and the result of a round."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bfl_tf import weights


class State(NamedTuple):
  """State of a run, sufficient to resume it.

  Attributes:
    slots: Arrays that a server part keeps from round to round, by part, and the
      sizes of accepted updates (`admission.SLOT`).
  """

  round: int
  model: weights.Weights
  slots: dict[str, Any]
  memories: Any


class Round(NamedTuple):
  """Result of a round.

  Attributes:
    predictors: Groups of models that a part made, by name. They are scored
      with the round, and no later round reads them.
  """

  state: State
  info: dict[str, Any]
  predictors: Mapping[str, Sequence[weights.Weights]] = {}


def stored(
  servers: Iterable[Any], predictor: str, state: State
) -> Sequence[weights.Weights]:
  """Returns the stored models of the group `predictor`; none is usual."""
  for part in servers:
    if predictor in part.group_names and part.has('slot'):
      return part.stored(state.slots[part.name], state.model)
  return ()
