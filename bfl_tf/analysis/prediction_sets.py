"""Prediction sets with guaranteed coverage, calibrated on counts of the sites.

For numeric labels, a set is an interval.

Each site counts its calibration scores by class and bin and sends the counts.
The server adds the counts of each group and computes a threshold per group
(`metrics.conformal`). The groups are all examples, the sites, or the classes
(Mondrian sets, Vovk et al. 2003). Coverage is guaranteed for the examples of
each group. A personalized model has prediction sets from its site's counts
alone.
"""

from collections.abc import Mapping, Sequence
import json
import os
import pathlib
from typing import NamedTuple

import numpy as np

from bfl_tf import files, metrics, run_files
from bfl_tf.metrics import conformal

LEVELS = (0.9, 0.95)
RESIDUAL = 'log_residual'
GROUPS = ('all', 'site', 'class')
# With two classes, thresholds are by class if a class is rarer than this.
_RARE = 0.2


class PredictionSets(NamedTuple):
  """Thresholds that define prediction sets.

  Attributes:
    levels: Probabilities with which a set must contain the label.
    thresholds: Largest score of a class in the set, for each group and level,
      on the logarithmic scale of `metrics.set_scores`. The group `''` is all
      examples; the others are the sites or the classes, in order.
    num_examples: Number of calibration examples of each group.
    num_samples: Number of Monte Carlo samples per prediction; the guarantee
      holds for this number only.
    score: Score of a class, one of `metrics.SET_SCORES`; `RESIDUAL` for
      numeric labels.
    by: Which groups have thresholds of their own, one of `GROUPS`.
  """

  levels: tuple[float, ...]
  thresholds: dict[str, tuple[float, ...]]
  num_examples: dict[str, int]
  num_samples: int
  score: str
  by: str = 'all'

  @classmethod
  def of(
    cls,
    counts: Mapping[str, np.ndarray],
    num_samples: int,
    score: str,
    by: str = '',
    classes: Sequence[str] = (),
  ) -> 'PredictionSets':
    """Merges the counts of sites.

    Args:
      by: One of `GROUPS`. Empty: `class` for two classes of which one has less
        than 20 % of the examples, otherwise `all`.
    """
    every = np.stack([*counts.values()])
    sizes = every.sum((0, 2))
    if not by:
      is_rare = sizes.size == 2 and sizes.min() < _RARE * sizes.sum()
      by = 'class' if is_rare else 'all'
    if by == 'class' and not classes:
      raise ValueError('--sets_by=class: the labels are numbers: choose all.')
    groups = {'': every.sum((0, 1))}
    if by == 'site':
      groups |= zip(counts, every.sum(1))
    if by == 'class':
      groups |= zip(map(str, classes), every.sum(0), strict=True)
    limits = {
      name: tuple(metrics.threshold(own, 1 - level) for level in LEVELS)
      for name, own in groups.items()
    }
    numbers = {name: int(own.sum()) for name, own in groups.items()}
    return cls(LEVELS, limits, numbers, num_samples, score, by)

  @classmethod
  def of_limits(cls, limits: np.ndarray, score: str) -> 'PredictionSets':
    """Returns sets with these `limits`, without their numbers of examples."""
    groups = {'': limits[:, 0], **{str(k): v for k, v in enumerate(limits.T)}}
    limits_by_group = {name: tuple(own) for name, own in groups.items()}
    by = 'all' if limits.shape[1] == 1 else 'class'
    return cls(LEVELS, limits_by_group, {}, 0, score, by)

  def at(self, site: str) -> 'PredictionSets':
    """Returns the sets of a site; a site without examples has those of all."""
    if self.by != 'site':
      return self
    name = site if self.num_examples.get(site) else ''
    return self._replace(
      thresholds={'': self.thresholds[name]},
      num_examples={'': self.num_examples[name]},
      by='all',
    )

  @property
  def limits(self) -> np.ndarray:
    """Thresholds `[num_levels, num_classes]`, or `[num_levels, 1]`."""
    names = [*self.thresholds][1:] if self.by == 'class' else ['']
    return np.array([self.thresholds[name] for name in names]).T

  def classes(self, probs: np.ndarray) -> list[np.ndarray]:
    """Returns for each level whether the sets of examples contain a class.

    Each array of booleans has the shape of `probs`, `[num_examples,
    num_classes]`.
    """
    scores = metrics.set_scores(probs, self.score)
    return [scores <= limits for limits in self.limits]

  def half_widths(self) -> list[float]:
    """Returns half widths of intervals, in predictive standard deviations."""
    return [conformal.interval_half_width(limit) for (limit,) in self.limits]

  def is_enough(self, level: float) -> bool:
    """Returns False if every set of a level contains all labels."""
    return bool((self.limits[self.levels.index(level)] < 1).any())


def write(run_dir: str | os.PathLike, sets: PredictionSets) -> None:
  """Writes prediction sets to the directory of a run or personalized model."""
  path = pathlib.Path(run_dir) / run_files.CONFORMAL
  files.write_text(path, json.dumps(sets._asdict(), indent=2) + '\n')


def read(run_dir: str | os.PathLike) -> PredictionSets | None:
  """Returns the prediction sets of a run or personalized model, or None."""
  path = pathlib.Path(run_dir) / run_files.CONFORMAL
  if not path.exists():
    return None
  with files.reading(path, 'run "bfl-tf report" again'):
    sets = PredictionSets(**files.read_json(path))
    limits = {k: tuple(v) for k, v in sets.thresholds.items()}
    return sets._replace(levels=tuple(sets.levels), thresholds=limits)
