"""What a run carries from round to round, and what one round brings."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bfl_tf import weights


class State(NamedTuple):
  """All that a resume needs.

  Attributes:
    round: rounds done.
    model: the global model.
    slots: by server stage, what it carries from round to round; a client part
      that needs a stage is sent that stage's slot.
    memories: by client id and client part, what the client keeps.
  """

  round: int
  model: weights.Weights
  slots: dict[str, Any]
  memories: dict[int, dict[str, Any]]


class Round(NamedTuple):
  """What was played; also what a server stage returns.

  Attributes:
    state: after it.
    info: columns of `metrics.csv`.
    predictors: by name, groups of models that a stage made to be scored with
      the round. No later round reads them.
  """

  state: State
  info: dict[str, Any]
  predictors: Mapping[str, Sequence[weights.Weights]] = {}


def fresh_slots(stages: tuple, model: weights.Weights) -> dict[str, Any]:
  """What stages carry before they have been called."""
  return {s.name: s.init(model) for s in stages if s.has_slot}
