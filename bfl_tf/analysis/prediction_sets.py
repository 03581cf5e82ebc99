"""Sets of classes that hold the label as often as they promise.

Each site counts its calibration scores by bin and sends the counts; the server
adds them up and reads off a threshold (`metrics.conformal`). What is promised
is the coverage over all sites' examples together: of a site, or of a class, it
is reported and not promised. A site that has a model of its own makes a promise
of its own with it, from its own counts, and for itself.
"""

from collections.abc import Sequence
import json
import os
import pathlib
from typing import NamedTuple

import numpy as np

from bfl_tf import files, metrics, run_files
from bfl_tf.metrics import conformal

LEVELS = (0.9, 0.95)


class PredictionSets(NamedTuple):
  """Which classes are in a set.

  Attributes:
    levels: Probabilities with which a set must contain the label.
    thresholds: Largest score of a class in the set, for each level.
    num_examples: Number of calibration examples.
    num_samples: passes of the model that was asked; it holds for no other.
    score: one of `metrics.SET_SCORES`.
  """

  levels: tuple[float, ...]
  thresholds: tuple[float, ...]
  num_examples: int
  num_samples: int
  score: str

  @classmethod
  def of(
    cls, counts: Sequence[np.ndarray], num_samples: int, score: str
  ) -> 'PredictionSets':
    """Merges what sites count: `[num_bins]` integers each."""
    total = np.sum(counts, axis=0)
    limits = tuple(metrics.threshold(total, 1 - level) for level in LEVELS)
    return cls(LEVELS, limits, int(total.sum()), num_samples, score)

  def sets(self, probs: np.ndarray) -> list[np.ndarray]:
    """Returns for each level `[num_examples, num_classes]` bool."""
    scores = metrics.set_scores(probs, self.score)
    return [scores <= limit for limit in self.thresholds]

  def is_enough(self, level: float) -> bool:
    """Whether the sets of a level are smaller than all classes."""
    return self.thresholds[self.levels.index(level)] < 1

  def informative(self) -> 'PredictionSets':
    """Returns it without the levels whose sets are every class."""
    levels = tuple(level for level in self.levels if self.is_enough(level))
    limits = tuple(limit for limit in self.thresholds if limit < 1)
    return self._replace(levels=levels, thresholds=limits)


def write(run_dir: str | os.PathLike, promise: PredictionSets) -> None:
  """Writes the promise of a run, or of a site's own model, in its directory."""
  content = {**promise._asdict(), 'num_bins': conformal.NUM_BINS}
  path = pathlib.Path(run_dir) / run_files.CONFORMAL
  files.write_text(path, json.dumps(content, indent=2) + '\n')


def read(run_dir: str | os.PathLike) -> PredictionSets | None:
  """Returns the promise of a run or of a site's own model; None without one.

  Raises:
    ValueError: The thresholds were stored by another version.
  """
  path = pathlib.Path(run_dir) / run_files.CONFORMAL
  if not path.exists():
    return None
  content = json.loads(path.read_text())
  if content.pop('num_bins', None) != conformal.NUM_BINS:
    raise ValueError(
      f'{path} was written by another version: run "bfl-tf report" again.'
    )
  levels, limits, *others = content.values()
  return PredictionSets(tuple(levels), tuple(limits), *others)
