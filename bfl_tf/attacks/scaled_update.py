"""A scaled update: start + factor (trained - start)."""

import dataclasses
from typing import Annotated, ClassVar

import numpy as np

from bfl_tf import weights
from bfl_tf.attacks import base
from bfl_tf.settings import Setting


@dataclasses.dataclass(frozen=True)
class ScaledUpdate(base.Attack):
  """A client that goes further than it was trained to, or back.

  Of a posterior the mean is moved; its spread is what was trained.
  """

  factor: Annotated[
    float,
    Setting('On the update of the mean; below 0 it goes back.', least=-1e6),
  ] = -5.0

  name: ClassVar[str] = 'scaled_update'

  def send(
    self,
    model: weights.Weights,
    start: weights.Weights,
    generator: np.random.Generator,
  ) -> weights.Weights:
    """Returns the model with its mean moved."""
    before = start.mean.astype(np.float64)
    return model.replace_mean(before + self.factor * (model.mean - before))
