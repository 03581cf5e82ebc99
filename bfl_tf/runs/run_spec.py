"""A planned run: its config, directory and status."""

import functools
import pathlib

from bfl_tf import run_files
from bfl_tf.config.config import Config
from bfl_tf.runs.directory import RunDirectory


class RunSpec:
  """A planned or finished run."""

  config: Config
  directory: pathlib.Path
  place: str

  @functools.cached_property
  def mismatch(self) -> str | None:
    """Reason why the directory cannot contain this run, or None."""
    try:
      RunDirectory(self.directory).check(self.config)
    except ValueError as error:
      return str(error)
    return None

  @property
  def is_done(self) -> bool:
    """Whether the run is finished with its current settings."""
    if not run_files.is_finished(self.directory):
      return False
    directory = RunDirectory(self.directory)
    try:
      directory.check(self.config)
      return directory.summary(self.config.final_round) is not None
    except ValueError:
      return False

  def complete(self) -> None:
    """Writes what the run needs in addition to its summary."""

  @property
  def failure_path(self) -> pathlib.Path:
    """Path of the file that records a failure, next to the run directory."""
    return self.directory.with_name(f'{self.directory.name}.failure.txt')

  @property
  def failure(self) -> str | None:
    """The mismatch or the last failure of the run, or None."""
    if self.mismatch:
      return self.mismatch
    path = self.failure_path
    return path.read_text('utf-8').strip() if path.exists() else None
