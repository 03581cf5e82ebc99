"""Compares finished runs: one table and three figures.

  python -m experiments.compare runs/nwa runs/lp --output=runs/compared

Runs whose flags differ in nothing but the seed are one row: mean and standard
error over seeds. A row's name is what differs in its flags. Exit code 2: a
directory holds no finished run of this version, and nothing was written.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import json
import pathlib

from absl import flags
import numpy as np

from bfl_tf import files
from bfl_tf.config import config as config_lib
from bfl_tf.plots import comparison
from bfl_tf.runs import flags_file
from bfl_tf.runs import rows as rows_lib
from experiments import flags as config_flags
from experiments.harness import tables

_OUTPUT = flags.DEFINE_string(
  'output', None, 'Where the table and the figures go; only printed if empty.'
)
_SCORES = flags.DEFINE_list(
  'scores', [], 'Columns of the table; all that every run has if empty.'
)
# Of the machine, or of where a run lies.
_SAME = (*config_lib.MACHINE_FIELDS, 'seed')


@dataclasses.dataclass
class Group:
  """Runs that differ in their seeds alone.

  Attributes:
    settings: every flag but the seed, as text; by `--flag=name` the digest of
      a file, or of somebody's own code.
    runs: directories, by seed.
  """

  settings: dict[str, str]
  runs: dict[int, pathlib.Path] = dataclasses.field(default_factory=dict)

  def scores(self) -> list[dict[str, float]]:
    """What is known of every run, by seed."""
    return [scores_of(self.runs[seed]) for seed in sorted(self.runs)]


def main(paths: Sequence[str]) -> None:
  """Prints the table; writes it and the figures."""
  if len(paths) < 2:
    config_flags.fail('name two finished runs or more: compare DIR DIR ...')
  try:
    groups = named(grouped(paths))
    lines = rows(groups, _SCORES.value)
    directories = {
      name: [group.runs[seed] for seed in sorted(group.runs)]
      for name, group in groups.items()
    }
    figures = dict(_drawn(directories)) if _OUTPUT.value else {}
    print(markdown(lines), end='')
    if _OUTPUT.value:
      _write(pathlib.Path(_OUTPUT.value), lines, figures)
      print(f'\ntable and figures in {_OUTPUT.value}')
  except ValueError as error:
    config_flags.fail(error)


def _drawn(directories):
  """Yields figures by name; of what a run lacks it is not in them."""
  yield 'learning_curves', comparison.learning_curves(directories)
  whole = {}
  for group, runs in directories.items():
    for run in runs:
      if (run / 'predictions.npz').exists():
        whole.setdefault(group, []).append(run)
      else:
        print(f'{run} kept no predictions: it is not in every figure')
  if whole:
    yield 'calibration', comparison.calibration(whole)
    yield 'risk_coverage', comparison.risk_coverage(whole)


def grouped(paths: Sequence[str]) -> list[Group]:
  """Returns the groups that run directories make up, in their order.

  Raises:
    ValueError: one holds no finished run of this version, or a run is given
      twice.
  """
  groups: list[Group] = []
  for path in map(pathlib.Path, paths):
    if not (path / 'summary.json').exists():
      raise ValueError(f'{path} holds no finished run.')
    config = flags_file.read_config(path)
    settings = dict(
      line.removeprefix('--').partition('=')[::2]
      for line in flags_file.flag_lines(config)[1:]
    )
    settings = {k: v for k, v in settings.items() if k not in _SAME}
    # Of another file, or other code, a run is no seed of the same setting.
    settings |= flags_file.digests(path)
    found = [group for group in groups if group.settings == settings]
    if not found:
      groups.append(Group(settings))
    group = (found or groups[-1:])[0]
    if config.seed in group.runs:
      raise ValueError(
        f'{path} and {group.runs[config.seed]} are the same run: leave one out.'
      )
    group.runs[config.seed] = path
  return groups


def named(groups: Sequence[Group]) -> dict[str, Group]:
  """Names each group by the flags in which it differs from another."""
  keys = dict.fromkeys(key for group in groups for key in group.settings)
  texts = {key: {group.settings.get(key) for group in groups} for key in keys}
  differ = [key for key, found in texts.items() if len(found) > 1]
  # A setting of a method that only some choose says no more than the method.
  names = _names(groups, [key for key in differ if None not in texts[key]])
  if len(set(names)) < len(names):
    names = _names(groups, differ)
  return dict(zip(names, groups, strict=True))


def _names(groups, keys):
  texts = (
    ' '.join(f'{key}={group.settings.get(key, "-")}' for key in keys)
    for group in groups
  )
  return [text or 'all' for text in texts]


def rows(
  groups: Mapping[str, Group], wanted: Sequence[str] = ()
) -> list[dict[str, str]]:
  """Returns the table: mean and standard error over seeds, a dash for none.

  Raises:
    ValueError: a wanted score is of no run.
  """
  every = {name: group.scores() for name, group in groups.items()}
  scores = [each for found in every.values() for each in found]
  known = list(dict.fromkeys(name for each in scores for name in each))
  for name in wanted:
    if name not in known:
      raise ValueError(f'--scores: no run has {name}; {", ".join(known)}.')
  shared = [name for name in known if all(name in each for each in scores)]
  return [
    {'run': name, 'seeds': str(len(found))}
    | {
      score: mean_and_error([each.get(score, np.nan) for each in found])
      for score in wanted or shared
    }
    for name, found in every.items()
  ]


def scores_of(run: pathlib.Path) -> dict[str, float]:
  """The last scores of a run, and those of experiments.sites and doubt."""
  scores = json.loads((run / 'summary.json').read_text())['final']
  for more in ('sites', 'doubt'):
    path = run / more / 'scores.json'
    if path.exists():
      scores |= json.loads(path.read_text())
  return scores


def mean_and_error(values: Sequence[float]) -> str:
  """Returns `0.9123 ± 0.0012`; without the latter of a single value.

  Where some have none, as of a model that ran away: `0.9123 ± 0.0012 (2 of 3)`.
  """
  finite = [value for value in values if np.isfinite(value)]
  if not finite:
    return '-'
  text = f'{np.mean(finite):.4f}'
  if len(finite) > 1:
    text += f' ± {np.std(finite, ddof=1) / len(finite) ** 0.5:.4f}'
  if len(finite) < len(values):
    text += f' ({len(finite)} of {len(values)})'
  return text


def markdown(lines: Sequence[Mapping[str, str]]) -> str:
  """Returns rows as a table in markdown."""
  return tables.markdown([[*lines[0]], *([*row.values()] for row in lines)])


def _write(folder, lines, figures):
  folder.mkdir(parents=True, exist_ok=True)
  rows_lib.write_csv(folder / 'compared.csv', lines)
  files.write_text(folder / 'compared.md', markdown(lines))
  for name, figure in figures.items():
    figure.savefig(folder / f'{name}.png')


if __name__ == '__main__':
  config_flags.main(main)
