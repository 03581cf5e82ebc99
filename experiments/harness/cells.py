"""Cells: settings of a paper, each a preset with overrides.

Tables, figures and claims with the same cell read the same finished runs.
"""

from collections.abc import Callable, Iterable, Mapping
import dataclasses
import functools
import json
import math
import pathlib
from typing import Any

import numpy as np

from bfl_tf import files, run_files, runs
from bfl_tf.config import config as config_lib
from bfl_tf.runs import tables

SCALES = ('smoke', 'laptop', 'overnight', 'paper')
SMOKE = 'A SMOKE TEST: it shows that the code runs, and nothing else.'
# Seeds by scale: the default, then for tables with many cells, for searches and
# figures of one run, for claims, and for claims on runs that take seconds.
SEEDS = {**dict.fromkeys(SCALES, range(3)), 'smoke': range(1)}
FEWER = {**SEEDS, 'laptop': range(1)}
ONE = dict.fromkeys(SCALES, range(1))
# At laptop scale, claims have seeds that no earlier experiment used.
OF_CLAIMS = {**SEEDS, 'laptop': range(10, 20)}
TEN = {**OF_CLAIMS, 'overnight': range(10), 'paper': range(10)}
# Settings of scale `smoke`. Settings of other methods than the selected ones
# are ignored.
SMALLEST: Mapping[str, Any] = {
  'dataset': 'digits',
  'augment': False,
  'model': 'mlp',
  'mlp.hidden_units': (8,),
  'num_rounds': 1,
  'local_epochs': 1,
  'num_mc_samples': 2,
  'final_num_mc_samples': 2,
  'swag.period': 1,
  'swag.burn_in': 0.0,
  'swag.rank': 2,
  'ensemble.num_samples': 2,
  'distil.epochs': 1,
}
# Pooling rules of Fischer et al., by their names in tables.
RULES = {
  'NWA': 'nwa',
  'WS': 'ws',
  'LP': 'lp',
  'WC': 'wc',
  'Conflation': 'conflation',
}
# A symbolic link in a clone; a folder in a wheel.
CONFIGS = pathlib.Path(__file__).parents[1] / 'configs'


@functools.cache
def _read(path):
  return config_lib.read_flagfile(path)


@dataclasses.dataclass(frozen=True, eq=False)
class Paper:
  """Settings that the cells of a paper share.

  Attributes:
    name: Name, such as `posterior_pooling`. The preset is
      `configs/<name>.flags`; further flags are in `configs/<name>/`.
    scales: Overrides of the preset, by scale.
    citation: Such as `Chen & Chao 2021`; empty for our own experiments.
    notes: Description of each scale except `smoke`, for the headers of tables.
  """

  name: str
  scales: Mapping[str, Mapping[str, Any]] = dataclasses.field(
    default_factory=dict
  )
  citation: str = ''
  notes: Mapping[str, str] = dataclasses.field(default_factory=dict)

  @functools.cached_property
  def preset(self) -> dict[str, Any]:
    """The paper's settings."""
    return _read(CONFIGS / f'{self.name}.flags')

  def flags(self, *names: str) -> dict[str, Any]:
    """Returns the flags of `configs/<paper>/<name>.flags`; later files win."""
    files = [CONFIGS / self.name / f'{name}.flags' for name in names]
    return {key: v for file in files for key, v in _read(file).items()}


# Name of the first cell with the same paper, scale and config.
_FIRST: dict[Any, str] = {}
_CELLS: dict[Any, list['Cell']] = {}


@dataclasses.dataclass(frozen=True, eq=False)
class Cell:
  """One setting. Cells of a paper with equal configs share their runs.

  Attributes:
    name: Name, unique within the paper; a path below the paper's results.
    overrides: Settings that replace those of the preset and of the scale; at
      scale `smoke` the settings of the scale win.
    by_scale: Further overrides, by scale.
    predictor: Union of groups, or student, whose scores the cell reads, as in
      `accuracy_<predictor>`. If empty, the run's own predictor.
  """

  paper: Paper
  name: str
  overrides: Mapping[str, Any]
  by_scale: Mapping[str, Mapping[str, Any]] = dataclasses.field(
    default_factory=dict
  )
  predictor: str = ''
  # Results of `home`, since worker processes do not create the other cells.
  _homes: dict[str, str] = dataclasses.field(init=False, default_factory=dict)

  def __post_init__(self):
    _CELLS.setdefault(self.paper, []).append(self)

  def home(self, scale: str) -> str:
    """Returns the first cell of the paper that has the same runs."""
    if scale not in self._homes:
      for cell in _CELLS[self.paper]:
        runs_of = self.paper, scale, cell.config(scale, seed=0)
        cell._homes[scale] = _FIRST.setdefault(runs_of, cell.name)
    return self._homes[scale]

  def reading(self, predictor: str) -> 'Cell':
    """Returns a cell that reads another predictor of the same runs."""
    return dataclasses.replace(self, predictor=predictor)

  def tasks(
    self, scale: str, seeds: Iterable[int], root: pathlib.Path
  ) -> list['Task']:
    """Returns a task per seed."""
    return [Task(self, scale, seed, root) for seed in seeds]

  def config(self, scale: str, seed: int) -> config_lib.Config:
    """Returns the config of one run."""
    return _config(self, scale, seed)


@functools.cache
def _config(cell, scale, seed):
  scaled, own = cell.paper.scales.get(scale, {}), cell.overrides
  if scale == 'smoke':
    scaled, own = own, scaled  # A smoke run must stay small.
  further = {**cell.by_scale.get(scale, {}), 'seed': seed}
  # Overrides are stronger than the file of a `method`, and it than a preset.
  typed = cell.overrides.keys() if 'method' in cell.overrides else ()
  return config_lib.Config.of(
    {**cell.paper.preset, **scaled, **own, **further}, typed=typed
  )


@dataclasses.dataclass(frozen=True)
class Task(runs.RunSpec):
  """A cell at a scale and seed, with its place below `root`."""

  cell: Cell
  scale: str
  seed: int
  root: pathlib.Path

  @functools.cached_property
  def config(self) -> config_lib.Config:
    """Config of the run."""
    return self.cell.config(self.scale, self.seed)

  @property
  def directory(self) -> pathlib.Path:
    """Directory of the run."""
    place = pathlib.Path(self.cell.paper.name, self.cell.home(self.scale))
    return self.root / self.scale / place / f'seed{self.seed}'

  @property
  def place(self) -> str:
    """Directory of the run, relative to the root."""
    return str(self.directory.relative_to(self.root))


class UnrecordedError(LookupError):
  """A run has no such score, or no stored model."""


@dataclasses.dataclass(frozen=True)
class Measure:
  """A number that is read from a finished run.

  Attributes:
    read: Function of a run directory, for a predictor or the run's own.
    published: Name of the metric in `configs/published.csv`, or None.
    factor: Factor that converts the number to the label's unit.
  """

  label: str
  read: Callable[[pathlib.Path, str], float]
  published: str | None = None
  factor: float = 1.0
  digits: int = 2

  def __call__(self, task: Task) -> float:
    value = self.get(task)
    return math.nan if value is None else value

  def get(self, task: Task) -> float | None:
    """Returns the number; None if not recorded, NaN if the run diverged."""
    try:
      return self.factor * self.read(task.directory, task.cell.predictor)
    except UnrecordedError:
      return None


def final(name: str) -> Callable[[pathlib.Path, str], float]:
  """Returns a function that reads a score of the final evaluation."""

  def read(directory: pathlib.Path, predictor: str = '') -> float:
    wanted = f'{name}_{predictor}' if predictor else name
    scores = run_files.read_summary(directory)['final']
    if wanted not in scores:
      raise UnrecordedError(f'{directory} has no {wanted}')
    return float(scores[wanted])

  return read


def column(
  name: str, pick: Callable[[list[float]], float], first_round: int = 0
) -> Callable[[pathlib.Path, str], float]:
  """Returns a function that applies `pick` to a column of `metrics.csv`."""

  def read(directory: pathlib.Path, predictor: str = '') -> float:
    wanted = f'{name}_{predictor}' if predictor else name
    numbers = [
      float(row[wanted])
      for row in tables.read(directory / run_files.METRICS)
      if row['round'] >= first_round and wanted in row
    ]
    if not numbers:
      raise UnrecordedError(f'{directory}/metrics.csv has no {wanted}')
    return pick(numbers)

  return read


def cached(
  directory: pathlib.Path,
  name: str,
  ask: Callable[[pathlib.Path], dict[str, Any]],
) -> dict[str, Any]:
  """Returns `ask(directory)`; the result is cached in the file `name`."""
  path = directory / name
  if not path.exists():
    if not (directory / run_files.CHECKPOINT).exists():
      raise UnrecordedError(f'{directory} kept no model')
    answers = ask(directory)
    path.parent.mkdir(exist_ok=True)
    files.write_text(path, json.dumps(answers, indent=2) + '\n')
  return files.read_json(path)


def picked_member(directory: pathlib.Path, predictor: str) -> float:
  """Returns the accuracy of a group's best member.

  It is selected on every other test example and scored on the rest.
  """
  with np.load(directory / run_files.MEMBERS) as file:
    correct = file[f'correct_{predictor}']
  best = correct[:, ::2].mean(-1).argmax()
  return float(correct[best, 1::2].mean())


ACCURACY = Measure(
  'Accuracy (%)', final('accuracy'), 'accuracy_percent', factor=100
)
NLL = Measure('NLL (nats)', final('nll'), 'nll_nats', digits=3)
ECE = Measure('ECE (%)', final('ece'), factor=100, digits=1)
# Accuracy in percentage points, for differences.
POINTS = Measure('points of accuracy', final('accuracy'), factor=100)
SPEED = Measure(
  'points of mean accuracy over rounds',
  # Ensembles have no score before the first round.
  column('accuracy', lambda values: float(np.mean(values)), first_round=1),
  factor=100,
)
