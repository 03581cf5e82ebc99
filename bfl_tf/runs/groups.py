"""Groups of finished runs with the same settings and different seeds."""

from collections.abc import Iterable, Sequence
import dataclasses
import os
import pathlib
from typing import Any

from bfl_tf import files, run_files
from bfl_tf.config import named_method
from bfl_tf.config.config import Config
from bfl_tf.runs import directory, run_config


@dataclasses.dataclass
class Group:
  """Runs that differ only in their seeds.

  Attributes:
    settings: All flags but the seed, as text, and digests of files and user
      code, by `--flag=name`.
  """

  settings: dict[str, str]
  runs: dict[int, pathlib.Path] = dataclasses.field(default_factory=dict)
  scores: dict[int, dict[str, float]] = dataclasses.field(default_factory=dict)
  failures: dict[int, str] = dataclasses.field(default_factory=dict)

  def add(self, seed: int, run: pathlib.Path) -> None:
    """Adds a finished run."""
    self.runs[seed], self.scores[seed] = run, scores_of(run)

  def directories(self) -> list[pathlib.Path]:
    """Returns the run directories, sorted by seed."""
    return [self.runs[seed] for seed in sorted(self.runs)]


def grouped(paths: Iterable[str | os.PathLike]) -> list[Group]:
  """Returns the groups of run directories, in their order."""
  groups: list[Group] = []
  for path in map(pathlib.Path, paths):
    config = run_config.read_config(path)
    settings = settings_of(config) | run_config.digests(path)
    matches = [group for group in groups if group.settings == settings]
    if not matches:
      groups.append(Group(settings))
    group = (matches or groups[-1:])[0]
    if config.seed in group.runs:
      raise ValueError(
        f'{path} and {group.runs[config.seed]} are the same run: remove one.'
      )
    group.add(config.seed, path)
  return groups


def settings_of(config: Config) -> dict[str, str]:
  """Returns the identifying flags of a run without its seed, and its method."""
  label = {'method': config.method} if config.method else {}
  return label | {
    k: v for k, v in run_config.identity(config).items() if k != 'seed'
  }


def differing(groups: Sequence[Group]) -> list[str]:
  """Returns the flags that distinguish groups.

  If groups have names of methods, flags of components are included only if the
  names and the other flags are not sufficient. Settings that only some groups
  use are included only if the other flags are not sufficient. Of these,
  settings that have one value are included only if the rest is not sufficient.
  """
  keys = dict.fromkeys(key for group in groups for key in group.settings)
  texts = {key: {group.settings.get(key) for group in groups} for key in keys}
  differ = [key for key, values in texts.items() if len(values) > 1]
  shared = [key for key in differ if None not in texts[key]]
  varied = [key for key in differ if len(texts[key] - {None}) > 1]
  name = [key for key in shared if key == 'method']
  components = (*named_method.OF_METHOD, 'client_optimizer')
  of_task = [key for key in shared if key not in components]
  for some in (name, of_task, shared, varied):
    apart = {tuple(each.settings.get(key) for key in some) for each in groups}
    if len(apart) == len(groups):
      return some
  return differ


def read_runs(folder: str | os.PathLike) -> Any:
  """Returns the finished runs below a folder as a data frame.

  Returns:
    A `pandas.DataFrame` with one row per run: `run`, its directory; one column
    per differing flag, numeric if possible; `seed`; and the final scores,
    including those of bfl-tf report and bfl-tf uncertainty.
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
    | {'seed': seed, **group.scores[seed]}
    for group in groups
    for seed, run in sorted(group.runs.items())
  )
  for key in keys:
    numbers = pandas.to_numeric(frame[key], errors='coerce')
    if not numbers.isna().any():
      frame[key] = numbers
  return frame


def name(group: Group, keys: Iterable[str]) -> str:
  """Returns the name of a group, like `pooling=nwa dirichlet.alpha=0.1`."""
  texts = [f'{key}={group.settings.get(key, "-")}' for key in keys]
  return ' '.join(texts) or 'all'


def scores_of(run: pathlib.Path) -> dict[str, float]:
  """Returns a run's final scores, also those of its later analyses."""
  scores = run_files.read_summary(run)['final']
  for more in ('', run_files.SITES, run_files.UNCERTAINTY):
    path = run / more / run_files.SCORES
    if path.exists():
      scores |= files.read_json(path)
  return scores
