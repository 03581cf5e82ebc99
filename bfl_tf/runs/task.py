"""The task of a run: shapes, types, features, and classes or numeric labels."""

import dataclasses
import json
import os
import pathlib
from typing import Any

import numpy as np

from bfl_tf import data, files, training

# Moments of the same examples differ by at most this many standard deviations.
_SAME = 1e-5


@dataclasses.dataclass(frozen=True)
class Task:
  """A task without its examples.

  Attributes:
    dtype: Type of raw examples, `uint8` or `float32`.
    num_classes: Number of classes; 0 if labels are numbers.
    mean: Mean of each channel or feature, as floats with float32 values.
  """

  input_shape: tuple[int, ...]
  dtype: str
  num_classes: int
  mean: tuple[float, ...]
  std: tuple[float, ...]
  class_names: tuple[str, ...] = ()
  features: data.Features = ()
  label_moments: tuple[float, float] = (0.0, 1.0)

  @classmethod
  def of(cls, dataset: data.Dataset) -> 'Task':
    """Returns the task of a data set."""
    return cls(
      input_shape=tuple(dataset.input_shape),
      dtype=dataset.train.x.dtype.name,
      num_classes=dataset.num_classes,
      mean=tuple(dataset.mean.tolist()),
      std=tuple(dataset.std.tolist()),
      class_names=tuple(dataset.class_names),
      features=tuple(dataset.features),
      label_moments=dataset.label_moments,
    )

  @classmethod
  def from_json(cls, text: str) -> 'Task':
    """Reads the output of `to_json`, bit-for-bit identical."""
    fields = json.loads(text)
    features = tuple(data.Feature(*f) for f in fields.pop('features'))
    tuples: dict[str, Any] = {
      n: tuple(v) if isinstance(v, list) else v for n, v in fields.items()
    }
    return cls(**tuples, features=features)

  def to_json(self) -> str:
    """Returns the text of `task.json`."""
    return json.dumps(dataclasses.asdict(self), indent=2) + '\n'

  def check_examples(self, path: str | os.PathLike, dataset: 'Task') -> None:
    """Rejects training examples that differ from those of the run."""
    if not self.is_like(dataset):
      raise ValueError(
        f"{path}: the training examples differ from those of the run's first "
        'round: start a new run in another directory.'
      )

  def is_like(self, other: 'Task') -> bool:
    """Returns whether another task has the same examples, up to names."""
    kinds = [(t.input_shape, t.dtype, t.num_classes) for t in (self, other)]
    if kinds[0] != kinds[1]:
      return False
    # Sums may round differently on another machine.
    (mean, std), theirs = self._moments, other._moments
    moved = np.abs([mean - theirs[0], std - theirs[1]])
    return bool(np.all(moved <= _SAME * std))

  @property
  def _moments(self) -> np.ndarray:
    """Mean and standard deviation of the inputs and of numeric labels."""
    center, unit = self.label_moments
    return np.array([[*self.mean, center], [*self.std, unit]])

  @property
  def is_numeric(self) -> bool:
    """Whether labels are numbers."""
    return not self.num_classes

  @property
  def classes(self) -> tuple[str, ...]:
    """Names of the classes, or their numbers as text."""
    return self.class_names or tuple(map(str, range(self.num_classes)))

  @property
  def inputs(self) -> training.Inputs:
    """Inputs of a `training.Predictor`."""
    return training.Inputs(
      self.input_shape,
      np.dtype(self.dtype),
      np.array(self.mean, np.float32),
      np.array(self.std, np.float32),
    )


def read(path: pathlib.Path) -> Task:
  """Reads a `task.json`."""
  with files.reading(path):
    return Task.from_json(path.read_text('utf-8'))
