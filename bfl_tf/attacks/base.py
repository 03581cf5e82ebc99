"""What all attacks have."""

import dataclasses
from typing import Annotated, ClassVar

from bfl_tf import settings
from bfl_tf.settings import Setting


@dataclasses.dataclass(frozen=True)
class Attack:
  """A fraction of the clients, and bounds that are checked."""

  fraction: Annotated[
    float, Setting('Of the clients that are bad.', least=0, below=1)
  ] = 0.2

  name: ClassVar[str]

  def __post_init__(self):
    settings.check(self)
