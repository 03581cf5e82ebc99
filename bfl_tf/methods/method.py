"""The value that defines a method."""

from collections.abc import Mapping
import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Method:
  """A method, as the flags that select its components.

  Attributes:
    flags: Fields and settings of the method, such as `{'client_parts': 'pvi',
      'pvi.damping': 0.1}`. All other fields of a method have their defaults.
    tune: Default ranges for tuning, such as `{'pvi.damping': 'log:0.03:0.3'}`.
    needs: Fields that the task must set, such as `{'num_rounds': 1}`.
    help: Text that `--describe` shows.
  """

  flags: Mapping[str, Any]
  tune: Mapping[str, str] = dataclasses.field(default_factory=dict)
  needs: Mapping[str, int] = dataclasses.field(default_factory=dict)
  help: str = ''
