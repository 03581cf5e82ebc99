"""A random model: every mean drawn from N(0, scale^2)."""

import dataclasses
from typing import Annotated, ClassVar

import numpy as np

from bfl_tf import weights
from bfl_tf.attacks import base
from bfl_tf.settings import Setting


@dataclasses.dataclass(frozen=True)
class RandomModel(base.Attack):
  """A client that sends noise, another one each round.

  Of a posterior the mean is noise; its spread is what was trained, so that it
  claims to be as sure as the others.
  """

  scale: Annotated[
    float, Setting('Standard deviation of the noise.', above=0)
  ] = 1.0

  name: ClassVar[str] = 'random_model'

  def send(
    self,
    model: weights.Weights,
    start: weights.Weights,
    generator: np.random.Generator,
  ) -> weights.Weights:
    """Returns noise in the shape of the model."""
    return model.replace_mean(
      self.scale * generator.standard_normal(model.mean.size)
    )
