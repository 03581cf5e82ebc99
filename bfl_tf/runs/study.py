"""A study: several configs, each with several seeds, in one folder.

A repeated call resumes interrupted runs and adds new ones. Finished runs are
only read.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import json
import os
import pathlib
from urllib import parse

from bfl_tf import files, run_files
from bfl_tf.config.config import Config
from bfl_tf.declare import registry, user_code
from bfl_tf.runs import executor, groups


@dataclasses.dataclass(frozen=True)
class Point(executor.RunSpec):
  """A run of a study, in `<folder>/<name>/seed<seed>`.

  Attributes:
    values: Tuned values; empty without tuning.
    scoring: `module:function` of more scores; they are in `run_files.SCORES`.
    row: Scores from the table of the study, for a run without a directory.
  """

  config: Config
  directory: pathlib.Path
  place: str
  name: str = ''
  values: str = ''
  scoring: str = ''
  row: Mapping[str, float] | None = dataclasses.field(
    default=None, compare=False
  )

  @property
  def is_done(self) -> bool:
    """Whether the table has the run, or its directory is complete."""
    if self.row is not None or not super().is_done:
      return self.row is not None
    return not self.scoring or (self.directory / run_files.SCORES).exists()

  @property
  def scores(self) -> Mapping[str, float]:
    """Scores of a finished run, and what it fitted on held-out examples."""
    if self.row is not None:
      return self.row
    summary = run_files.read_summary(self.directory)
    names = ('temperature', 'posterior_factor')
    fitted = {name: summary.get(name) for name in names}
    return groups.scores_of(self.directory) | {
      key: value for key, value in fitted.items() if value is not None
    }

  def complete(self) -> None:
    """Computes the scores of `scoring`."""
    if self.scoring:
      function = registry.imported('score_runs', self.scoring)
      scores = {k: float(v) for k, v in function(self.directory).items()}
      path = self.directory / run_files.SCORES
      files.write_text(path, json.dumps(scores, indent=2) + '\n')


def sweep(
  configs: Mapping[str, Config],
  folder: str | os.PathLike,
  seeds: Sequence[int] = (),
  jobs: int = 1,
) -> dict[str, list[pathlib.Path]]:
  """Runs several configs, each with several seeds.

  Args:
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
      Point(
        config.replace(seed=seed),
        pathlib.Path(folder, where := f'{place(name)}/seed{seed}'),
        where,
        name,
      )
      for seed in seeds or [config.seed]
    ]
    for name, config in configs.items()
  }


def place(name: str) -> str:
  """Returns the name of a folder; a slash, for example, is percent-encoded."""
  return parse.quote(name, safe='=,+')


def check(study: Mapping[str, Sequence[Point]]) -> dict[str, str]:
  """Builds one unfinished run of each config; returns why it cannot be run."""
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
  directories = {
    name: [run.directory for run in runs if run.is_done]
    for name, runs in study.items()
  }
  return {name: runs for name, runs in directories.items() if runs}
