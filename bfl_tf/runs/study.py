"""A study: several configs, each with several seeds, side by side in a folder.

The same call goes on where it was interrupted, and adds what is new to it:
finished runs are only read.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import os
import pathlib
from urllib import parse

from bfl_tf.config.config import Config
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
  """Plays several configs, each with several seeds.

  Args:
    configs: Configs by name.
    folder: Directory of the runs; finished runs are only read.
    seeds: Random seeds for each config; its own seed if empty.
    jobs: runs side by side. Above 1 they are processes, so that a script needs
      `if __name__ == '__main__':`.

  Returns:
    The directories of finished runs by name, as `bfl_tf.plots` takes them; why
    others failed was said in a line.

  Raises:
    ValueError: a config cannot be run; nothing has been written.
  """
  if not (isinstance(configs, Mapping) and configs):
    raise ValueError(
      f'configs must be a mapping of names to bfl_tf.Config, got {configs!r}.'
    )
  study = points(configs, folder, seeds)
  try:
    check(study)
    executor.run_all([run for runs in study.values() for run in runs], jobs)
  finally:
    # A file may hold other data by the next call.
    executor.built.clear()
  return finished(study)


def points(
  configs: Mapping[str, Config],
  folder: str | os.PathLike,
  seeds: Sequence[int] = (),
) -> dict[str, list[Point]]:
  """Returns what `sweep` plays, by name."""
  return {
    name: [
      _point(config.replace(seed=seed), pathlib.Path(folder), name)
      for seed in seeds or [config.seed]
    ]
    for name, config in configs.items()
  }


def _point(config, folder, name):
  # A name may hold a path.
  place = f'{parse.quote(name, safe="=,+")}/seed{config.seed}'
  return Point(config, folder / place, place)


def check(study: Mapping[str, Sequence[Point]]) -> None:
  """Builds what is not finished, a seed a config.

  Raises:
    ValueError: one cannot be run, or its place holds another run.
  """
  for runs in study.values():
    left = [run for run in runs if not run.is_done]
    for run in left:
      if run.mismatch:
        raise ValueError(run.mismatch)
    if left:
      executor.validate(left[0])


def finished(
  study: Mapping[str, Sequence[Point]],
) -> dict[str, list[pathlib.Path]]:
  """Returns the directories of what is finished, by name."""
  found = {
    name: [run.directory for run in runs if run.is_done]
    for name, runs in study.items()
  }
  return {name: runs for name, runs in found.items() if runs}
