"""The base class of server stages."""

import abc
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bfl_tf import weights
from bfl_tf.declare import component


class Stage(component.Component, abc.ABC):
  """One step from the pooled model to the next global model.

  Stages form the chains `--server_step` and `--refine`, and `--start` before
  the first round. A stage computes in float64 and rounds once.

  Attributes:
    statistics: Statistics over the updates of a round that the stage needs, in
      addition to the pooled model.
    predictors: Names of the groups of models that the stage creates, such as
      `('A', 'C')`. At most one stage of a run creates groups.
    sets_mean: Whether the stage is a method's own formula for the mean of the
      global model. At most one stage of a run has one.
  """

  sets_mean: ClassVar[bool] = False

  @property
  def statistics(self) -> tuple:
    return ()

  @property
  def predictors(self) -> tuple[str, ...]:
    return ()

  def init(self, model: weights.Weights) -> Any:
    """Returns the stage's slot before the first round.

    The slot is an array or a dict of arrays, which `state.slots[name]` carries
    from round to round. A stage without this hook has no slot.
    """

  def shared(self, slot: Any) -> Any:
    """Returns the arrays of the slot that the stage's client part receives.

    They are an array or a dict of arrays. By default, the part receives the
    whole slot.
    """
    return slot

  def stored(
    self, slot: Any, model: weights.Weights
  ) -> Sequence[weights.Weights]:
    """Returns models of the slot that the finished run predicts with.

    A run predicts with them if `--predictor` is the name of the only group of
    this stage. `model` is the global model.
    """
    return ()

  @property
  def has_slot(self) -> bool:
    """Whether this stage has a slot."""
    return component.overrides(self, Stage, 'init')

  @abc.abstractmethod
  def __call__(
    self,
    state: Any,
    reference: weights.Weights,
    pooled: weights.Weights,
    statistics: Mapping[Any, Any],
    seed: np.ndarray,
  ) -> tuple:
    """Returns the next state.

    Args:
      state: A `federation.State`; `state.model` is the pooled model, as earlier
        stages of the chain changed it.
      reference: Broadcast model.
      pooled: Result of the pooling rule.
      statistics: Result of each of `self.statistics`.
      seed: `[2]` int32, unique to this stage and round.

    Returns:
      `(state, info)` or `(state, info, groups)`: the new state, columns of
      `metrics.csv`, and groups of models by name. A group is a sequence that
      may create its members on demand. The round scores groups, but does not
      store them.
    """
