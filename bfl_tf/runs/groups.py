"""Finished runs by what they were made with: seeds of one setting together."""

from collections.abc import Iterable, Sequence
import dataclasses
import json
import os
import pathlib
from typing import Any

from bfl_tf import run_files
from bfl_tf.config.config import Config
from bfl_tf.runs import directory, flags_file


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

  def directories(self) -> list[pathlib.Path]:
    """Returns the run directories, by seed."""
    return [self.runs[seed] for seed in sorted(self.runs)]


def grouped(paths: Iterable[str | os.PathLike]) -> list[Group]:
  """Returns the groups that run directories make up, in their order.

  Raises:
    ValueError: one holds no finished run of this version, or a run is given
      twice.
  """
  groups: list[Group] = []
  for path in map(pathlib.Path, paths):
    if not run_files.is_finished(path):
      raise ValueError(f'{path} holds no finished run.')
    config = flags_file.read_config(path)
    settings = settings_of(config) | flags_file.digests(path)
    found = [group for group in groups if group.settings == settings]
    if not found:
      groups.append(Group(settings))
    group = (found or groups[-1:])[0]
    if config.seed in group.runs:
      raise ValueError(
        f'{path} and {group.runs[config.seed]} are the same run: remove one.'
      )
    group.runs[config.seed] = path
  return groups


def settings_of(config: Config) -> dict[str, str]:
  """Returns the flags of a run that are not its seed."""
  return {k: v for k, v in flags_file.identity(config).items() if k != 'seed'}


def differing(groups: Sequence[Group]) -> list[str]:
  """Returns the flags that tell groups apart.

  A setting of a method that only some choose says no more than the method, and
  is not among them unless it has to be.
  """
  keys = dict.fromkeys(key for group in groups for key in group.settings)
  texts = {key: {group.settings.get(key) for group in groups} for key in keys}
  differ = [key for key, found in texts.items() if len(found) > 1]
  shared = [key for key in differ if None not in texts[key]]
  apart = {tuple(each.settings[key] for key in shared) for each in groups}
  return shared if len(apart) == len(groups) else differ


def read_runs(folder: str | os.PathLike) -> Any:
  """Returns the finished runs below a folder as a data frame.

  Returns:
    A `pandas.DataFrame`, a row a run: `run`, its directory; a column a flag
    that differs, a number where all are; `seed`; and the last scores, those of
    bfl-tf report and doubt too.

  Raises:
    ValueError: The directory holds no run, or one of another version.
  """
  import pandas

  paths = sorted(
    path.parent
    for path in pathlib.Path(folder).rglob(run_files.SUMMARY)
    if not directory.is_sites_own(path.parent)
  )
  if not paths:
    raise ValueError(f'{folder} holds no finished run.')
  groups = grouped(paths)
  keys = differing(groups)
  frame = pandas.DataFrame(
    {'run': str(run), **{key: group.settings.get(key) for key in keys}}
    | {'seed': seed, **scores_of(run)}
    for group in groups
    for seed, run in sorted(group.runs.items())
  )
  for key in keys:
    numbers = pandas.to_numeric(frame[key], errors='coerce')
    if not numbers.isna().any():
      frame[key] = numbers
  return frame


def name(group: Group, keys: Iterable[str]) -> str:
  """Returns `pooling=nwa dirichlet.alpha=0.1`."""
  texts = [f'{key}={group.settings.get(key, "-")}' for key in keys]
  return ' '.join(texts) or 'all'


def scores_of(run: pathlib.Path) -> dict[str, float]:
  """The last scores of a run, and those of bfl-tf report and doubt."""
  scores = run_files.read_summary(run)['final']
  for more in (run_files.SITES, run_files.UNCERTAINTY):
    path = run / more / run_files.SCORES
    if path.exists():
      scores |= json.loads(path.read_text())
  return scores
