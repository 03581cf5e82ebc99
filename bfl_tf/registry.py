"""Look a thing up by the name that a flag gave.

A table maps short names to ours; `package.module:name` reaches anybody's own.
"""

from collections.abc import Iterable, Mapping
import difflib
import importlib
from typing import Any


def check_choice(flag: str, value: str, known: Iterable[str]) -> None:
  """Raises a ValueError naming the flag unless `value` is one of `known`."""
  known = list(known)
  if value not in known:
    raise ValueError(
      f'--{flag}={value} is unknown. Choose one of {", ".join(known)}.'
    )


def resolve(flag: str, name: str, table: Mapping[str, Any]) -> Any:
  """Returns `table[name]`, or the object that `package.module:name` names.

  Args:
    flag: what the user set, for the error message: `partition`.
    name: the key, or a dotted module and an attribute joined by a colon.
    table: what we bring ourselves.

  Raises:
    ValueError: nothing goes by that name.
  """
  if name in table:
    return table[name]
  if ':' in name:
    module, _, attribute = name.partition(':')
    try:
      return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
      raise ValueError(
        f'--{flag}={name} cannot be imported: {error}.'
      ) from error
  near = difflib.get_close_matches(name, table, n=1)
  hint = f' Did you mean {near[0]!r}?' if near else ''
  raise ValueError(
    f'--{flag}={name} is unknown.{hint} Choose one of '
    f'{", ".join(sorted(table))}, or package.module:name.'
  )
