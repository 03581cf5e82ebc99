"""Tables of the runs of a study, which continues from them.

`trials.csv` has the runs that choose the tuned values, and `runs.csv` the final
runs. A row has the names of the setting and of the tuned values, the seed, the
scores, or the reason of a failure. A run with scores in the table needs no
directory: tables may come from another machine, and rows may be added or
deleted by hand. The column `flags` has a digest of all other flags; if it is
not empty, it must be that of the run.
"""

from collections.abc import Mapping
import csv
import dataclasses
import functools
import hashlib
import json
import pathlib
import re
import subprocess
from typing import Any

import filelock

from bfl_tf import run_files, version
from bfl_tf.runs import groups, study, tables

_KEY = ('setting', 'values', 'seed')
# Columns that are no scores; others are axes of the grid.
_TEXTS = ('chosen_by', 'failure', 'flags', 'commit')


class StudyTable:
  """A table of runs, in a .csv file that need not exist."""

  def __init__(self, path: pathlib.Path):
    self._path, self._rows = path, _read(path)
    self._added = dict[tuple, dict[str, Any]]()

  def scores(self, run: study.Point) -> dict[str, float] | None:
    """Returns the scores of a run; None if it has none or failed.

    Raises:
      ValueError: The run had other flags, or a score is no number.
    """
    row = self._rows.get(_key(*_place(run)))
    if row is None or row.get('failure'):
      return None
    if row.get('flags') not in (None, '', _digest(run.config)):
      raise ValueError(
        f'{self._path}: {run.name}, seed {run.config.seed} ran with other '
        'flags: choose another --output_dir, or delete this row.'
      )
    axes = {word.partition('=')[0] for word in run.name.split(',')}
    scores = {
      name: text
      for name, text in row.items()
      if text not in (None, '') and name not in {*_KEY, *_TEXTS, *axes}
    }
    try:
      return {name: float(text) for name, text in scores.items()}
    except ValueError as error:
      raise ValueError(f'{self._path}, {run.name}: {error}.') from error

  def attached(self, run: study.Point) -> study.Point:
    """Returns a run with its scores, if it has no directory."""
    if run_files.is_finished(run.directory):
      return run
    return dataclasses.replace(run, row=self.scores(run))

  def record(
    self, run: study.Point, axes: Mapping[str, str], chosen_by: str = ''
  ) -> None:
    """Adds a run that is finished or failed.

    Args:
      axes: Values of the axes of the grid, which have columns.
      chosen_by: Score that chose the values of this run; empty if none did.
    """
    failure = None if run.is_done else run.failure
    if run.is_done or failure:
      scores = run.scores if run.is_done else {}
      self.add(run, scores, axes, chosen_by=chosen_by or None, failure=failure)

  def add(
    self,
    run: study.Point,
    scores: Mapping[str, float],
    axes: Mapping[str, str],
    **texts: str | None,
  ) -> None:
    """Adds a row, which keeps the commit of an older finished one."""
    place, commit = _place(run), _commit()
    key = _key(*place)
    if self.scores(run) is not None:
      commit = self._rows[key].get('commit') or ''
    self._rows[key] = self._added[key] = {
      **dict(zip(_KEY, place)), **axes, **scores, **texts,
      'flags': _digest(run.config), 'commit': commit,
    }  # fmt: skip
    if texts.get('chosen_by'):  # Another trial may have been chosen before.
      for other, row in self._rows.items():
        if other[0] == key[0] and other[1] != key[1] and row.get('chosen_by'):
          self._rows[other] = self._added[other] = {**row, 'chosen_by': None}

  def chosen(self, name: str) -> dict[str, str] | None:
    """Returns the tuned values that a score chose for a setting, if any."""
    wanted, *_ = _key(name, '', '')
    for (setting, *_), row in self._rows.items():
      if setting == wanted and row.get('chosen_by'):
        # Without a tuned value, the text is `all`.
        pairs = re.split(r',(?=[\w.]+=)', row['values'])
        return dict(pair.split('=', 1) for pair in pairs if '=' in pair)
    return None

  def write(self) -> None:
    """Adds the new rows to the file, which other processes also write."""
    if self._rows:
      self._path.parent.mkdir(parents=True, exist_ok=True)
      with filelock.FileLock(self._path.with_name(f'.{self._path.name}.lock')):
        self._rows = _read(self._path) | self._added
        tables.write_csv(self._path, [*self._rows.values()])


def _read(path):
  """Returns the rows of a file, which need not exist, by their place."""
  if not path.exists():
    return {}
  with path.open(newline='', encoding='utf-8') as file:
    rows: list[dict[str, Any]] = [*csv.DictReader(file)]
  if not all({*_KEY} <= row.keys() for row in rows):
    raise ValueError(f'{path} has not the columns {", ".join(_KEY)}.')
  return {_key(*(row[name] for name in _KEY)): row for row in rows}


def _place(run):
  return run.name, run.values, str(run.config.seed)


def _key(name, values, seed):
  """Returns a key that does not depend on the order of --grid and --tune."""
  return frozenset(name.split(',')), frozenset(values.split(',')), seed


def _digest(config):
  text = json.dumps(groups.settings_of(config), sort_keys=True)
  return hashlib.sha256(text.encode()).hexdigest()[:8]


@functools.cache
def _commit():
  """Returns the commit of the code, or the version of an installed package."""
  root = pathlib.Path(__file__).parents[2]
  if not (root / '.git').exists():
    return version.__version__
  command = ['git', 'describe', '--always', '--dirty', '--exclude=*']
  found = subprocess.run(command, capture_output=True, text=True, cwd=root)
  return found.stdout.strip()
