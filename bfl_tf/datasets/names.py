"""What the name of a data set, as a flag has it, says that it is."""

import enum
import pathlib
import re

from bfl_tf.datasets import builtin

_FUNCTION = re.compile(r'[A-Za-z_][\w.]*:[A-Za-z_]\w*')


class Kind(enum.Enum):
  """Where a data set comes from."""

  BUILTIN = enum.auto()
  NPZ = enum.auto()
  CSV = enum.auto()
  FUNCTION = enum.auto()
  TFDS = enum.auto()

  @property
  def is_file(self) -> bool:
    """Whether it is a file that is read."""
    return self in (Kind.NPZ, Kind.CSV)


def kind(name: str) -> Kind:
  """Returns the kind of a set; by a file's ending, in capitals or not."""
  suffix = pathlib.PurePath(name).suffix.lower()
  if name in builtin.BUILTIN:
    return Kind.BUILTIN
  if suffix in ('.npz', '.csv'):
    return Kind.NPZ if suffix == '.npz' else Kind.CSV
  return Kind.FUNCTION if _FUNCTION.fullmatch(name) else Kind.TFDS
