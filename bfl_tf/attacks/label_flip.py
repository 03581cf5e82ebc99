"""Label-flipping: class c becomes class C - 1 - c (Fang et al. 2020)."""

import dataclasses
from typing import Annotated, ClassVar

import numpy as np

from bfl_tf import settings
from bfl_tf.settings import Setting


@dataclasses.dataclass(frozen=True)
class LabelFlip:
  """A client that trains as it should, on labels that are wrong."""

  fraction: Annotated[
    float, Setting('Of the clients that are bad.', least=0, below=1)
  ] = 0.2

  name: ClassVar[str] = 'label_flip'

  def __post_init__(self):
    settings.check(self)

  def labels(self, y: np.ndarray, num_classes: int) -> np.ndarray:
    """Returns the flipped labels, of classes or of probabilities."""
    return y[:, ::-1] if y.ndim > 1 else (num_classes - 1 - y).astype(y.dtype)
