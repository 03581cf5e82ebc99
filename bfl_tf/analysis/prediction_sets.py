"""Prediction sets with guaranteed coverage, calibrated on counts of the sites.

For numeric labels, a set is an interval.

Each site counts its calibration scores by bin and sends the counts. The server
adds the counts and computes a threshold (`metrics.conformal`). Coverage is
guaranteed over the examples of all sites together; per site or class it is only
reported. A personalized model has prediction sets from its site's counts alone.
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
RESIDUAL = 'log_residual'


class PredictionSets(NamedTuple):
  """Thresholds that define prediction sets.

  Attributes:
    levels: Probabilities with which a set must contain the label.
    thresholds: Largest score of a class in the set, for each level, on the
      logarithmic scale of `metrics.set_scores`.
    num_samples: Number of Monte Carlo samples per prediction; the guarantee
      holds for this number only.
    score: Score of a class, one of `metrics.SET_SCORES`; `RESIDUAL` for
      numeric labels.
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
    """Merges the counts of sites, `[num_bins]` integers each."""
    total = np.sum(counts, axis=0)
    limits = tuple(metrics.threshold(total, 1 - level) for level in LEVELS)
    return cls(LEVELS, limits, int(total.sum()), num_samples, score)

  def classes(self, probs: np.ndarray) -> list[np.ndarray]:
    """Returns whether the set of an example contains a class, by level.

    Args:
      probs: `[num_examples, num_classes]`, predictive probabilities.

    Returns:
      For each level, booleans `[num_examples, num_classes]`.
    """
    scores = metrics.set_scores(probs, self.score)
    return [scores <= limit for limit in self.thresholds]

  def half_widths(self) -> list[float]:
    """Returns the half width of each level's intervals, for numeric labels.

    The unit is the predictive standard deviation.
    """
    return [conformal.interval_half_width(limit) for limit in self.thresholds]

  def is_enough(self, level: float) -> bool:
    """Returns False if every set of a level contains all labels."""
    return self.thresholds[self.levels.index(level)] < 1

  def informative(self) -> 'PredictionSets':
    """Returns a copy without the levels whose sets all contain every label."""
    levels = tuple(level for level in self.levels if self.is_enough(level))
    limits = tuple(limit for limit in self.thresholds if limit < 1)
    return self._replace(levels=levels, thresholds=limits)


def write(run_dir: str | os.PathLike, sets: PredictionSets) -> None:
  """Writes prediction sets to the directory of a run or personalized model."""
  content = {**sets._asdict(), 'num_bins': conformal.NUM_BINS}
  path = pathlib.Path(run_dir) / run_files.CONFORMAL
  files.write_text(path, json.dumps(content, indent=2) + '\n')


def read(run_dir: str | os.PathLike) -> PredictionSets | None:
  """Returns the prediction sets of a run or personalized model, or None.

  Raises:
    ValueError: The file is damaged or of another version.
  """
  path = pathlib.Path(run_dir) / run_files.CONFORMAL
  if not path.exists():
    return None
  with files.reading(path, 'run "bfl-tf report" again'):
    content = files.read_json(path, PredictionSets)
    same = content.pop('num_bins') == conformal.NUM_BINS
    known = content['score'] in (*metrics.SET_SCORES, RESIDUAL)
    _, limits, *others = content.values()
    good = [0 <= limit <= 1 for limit in limits] == [True] * len(LEVELS)
    if not (same and known and good and content['levels'] == [*LEVELS]):
      raise ValueError('It is of another version.')
    return PredictionSets(LEVELS, tuple(limits), *others)
