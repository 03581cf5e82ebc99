"""The contract of a server stage."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np


class Stage(Protocol):
  """One step from the pooled model to the next global model.

  Stages form the chains `--server_step` and `--refine`, and `--start` before
  the first round. A stage is a frozen dataclass; it computes in float64 and
  rounds once.

  Attributes:
    name: of its slot and its draws; of a stage in our tables, of its flags.
    statistics: Statistics that the stage needs beside the pooling rule; absent
      where it needs none.
    predictors: names of the groups of models that the stage makes, such as
      `('A', 'C')`; absent of most stages. One stage of a chain at most has it.
  """

  name: ClassVar[str]
  statistics: ClassVar[tuple]

  def init(self, model) -> Any:
    """Returns the stage's slot before the first round.

    Only of a stage that carries something from round to round in
    `state.slots[name]`: an array or a dict of arrays.
    """

  def __call__(
    self,
    state: Any,
    reference: Any,
    pooled: Any,
    statistics: Mapping[Any, Any],
    seed: np.ndarray,
  ) -> tuple:
    """Rewrites the model of a state.

    Args:
      state: `federation.State`; `state.model` is the pooled model, as earlier
        stages of the chain rewrote it.
      reference: the broadcast model.
      pooled: what the pooling rule returned.
      statistics: the result of each of `self.statistics`.
      seed: `[2]` int32, of this stage and round alone.

    Returns:
      `(state, info)` or `(state, info, groups)`: the new state, columns of
      `metrics.csv`, and groups of models by name. A group is a sequence that
      makes a member when it is asked for one; groups are scored with the round
      and not kept.
    """
