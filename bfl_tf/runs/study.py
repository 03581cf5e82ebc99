"""A study: several configs, each with several seeds, in one folder.

A repeated call resumes interrupted runs and adds new ones. Finished runs are
only read.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import os
import pathlib
from urllib import parse

from bfl_tf.config.config import Config
from bfl_tf.declare import user_code
from bfl_tf.runs import executor, run_spec


@dataclasses.dataclass(frozen=True)
class Point(run_spec.RunSpec):
  """A run of a study, in `<folder>/<name>/seed<seed>`."""

  config: Config
  directory: pathlib.Path
  place: str


def sweep(
  configs: Mapping[str, Config],
  folder: str | os.PathLike,
  seeds: Sequence[int] = (),
  jobs: int = 1,
) -> dict[str, list[pathlib.Path]]:
  """Runs several configs, each with several seeds.

  Args:
    folder: Directory of the runs; finished runs are only read.
    seeds: Random seeds for each config; its own seed if empty.
    jobs: Number of parallel runs. Above 1 they use processes, so a script needs
      `if __name__ == '__main__':`.

  Returns:
    The directories of finished runs by name, as input of `bfl_tf.plots`. For
    each failed run, a line with the reason is printed.

  Raises:
    ValueError: A config cannot be run; nothing was written.
  """
  study = points(configs, folder, seeds)
  try:
    if reasons := check(study):
      raise ValueError(next(iter(reasons.values())))
    executor.run_all([run for runs in study.values() for run in runs], jobs)
  finally:
    # Data files may change before the next call.
    executor.built.clear()
  return finished(study)


def points(
  configs: Mapping[str, Config],
  folder: str | os.PathLike,
  seeds: Sequence[int] = (),
) -> dict[str, list[Point]]:
  """Returns the runs of `sweep`, by name."""
  return {
    name: [
      _point(config.replace(seed=seed), pathlib.Path(folder), name)
      for seed in seeds or [config.seed]
    ]
    for name, config in configs.items()
  }


def place(name: str) -> str:
  """Returns the name of a folder; a slash, for example, is percent-encoded."""
  return parse.quote(name, safe='=,+')


def _point(config, folder, name):
  where = f'{place(name)}/seed{config.seed}'
  return Point(config, folder / where, where)


def check(study: Mapping[str, Sequence[Point]]) -> dict[str, str]:
  """Builds one unfinished run of each config; returns why it cannot be run.

  Raises:
    ValueError: A directory contains another run, or user code fails.
  """
  reasons = {}
  for name, runs in study.items():
    left = [run for run in runs if not run.is_done]
    for run in left:
      if run.mismatch:
        raise ValueError(run.mismatch)
    try:
      if left:
        executor.validate(left[0])
    except user_code.RaisedError:
      raise
    except ValueError as error:
      reasons[name] = str(error)
  return reasons


def finished(
  study: Mapping[str, Sequence[Point]],
) -> dict[str, list[pathlib.Path]]:
  """Returns the directories of finished runs, by name."""
  found = {
    name: [run.directory for run in runs if run.is_done]
    for name, runs in study.items()
  }
  return {name: runs for name, runs in found.items() if runs}
