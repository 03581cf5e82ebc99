"""A run that is planned: its config, its place, and whether it is done."""

import functools
import pathlib

from bfl_tf.config.config import Config
from bfl_tf.runs.directory import RunDirectory


class RunSpec:
  """A run to be played, or finished already.

  Attributes:
    config: Config of the run.
    directory: Directory of the run.
    place: Directory as it is shown in messages.
  """

  config: Config
  directory: pathlib.Path
  place: str

  @functools.cached_property
  def mismatch(self) -> str | None:
    """Says which flags differ in what the directory holds, or None."""
    try:
      RunDirectory(self.directory).check(self.config)
    except ValueError as error:
      return str(error)
    return None

  @property
  def is_done(self) -> bool:
    """Whether the run is finished, with the settings that it has now."""
    directory = RunDirectory(self.directory)
    try:
      directory.check(self.config)
    except ValueError:
      return False
    return directory.summary(self.config.num_rounds) is not None

  @property
  def failure_path(self) -> pathlib.Path:
    """The file next to the run that records a failure."""
    return self.directory.with_name(f'{self.directory.name}.failure.txt')

  @property
  def failure(self) -> str | None:
    """Why it cannot be read: settings that differ, or its last failure."""
    if self.mismatch:
      return self.mismatch
    path = self.failure_path
    return path.read_text().strip() if path.exists() else None
