"""Label-flipping: class c becomes class C - 1 - c (Fang et al. 2020)."""

import dataclasses
from typing import ClassVar

import numpy as np

from bfl_tf.attacks import base


@dataclasses.dataclass(frozen=True)
class LabelFlip(base.Attack):
  """A client that trains as it should, on labels that are wrong."""

  name: ClassVar[str] = 'label_flip'

  def labels(self, y: np.ndarray, num_classes: int) -> np.ndarray:
    """Returns the flipped labels, of classes or of probabilities."""
    return y[:, ::-1] if y.ndim > 1 else (num_classes - 1 - y).astype(y.dtype)
