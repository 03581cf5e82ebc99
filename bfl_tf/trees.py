"""Conversion between nested dicts of arrays and flat names."""

from collections.abc import Iterator, Mapping
import pathlib
from typing import Any

import numpy as np

from bfl_tf import files

SEPARATOR = '|'
# A separator within a key of a user's tree.
_ESCAPED = '%7C'


def leaves(tree: Mapping[str, Any], prefix: str = '') -> Iterator:
  """Yields the name and value of each leaf, such as `('model|loc', leaf)`."""
  for key, value in tree.items():
    name = prefix + str(key).replace(SEPARATOR, _ESCAPED)
    if hasattr(value, '_asdict'):
      value = value._asdict()
    if isinstance(value, Mapping):
      yield from leaves(value, name + SEPARATOR)
    else:
      yield name, value


def put(tree: dict[str, Any], name: str, leaf: Any) -> None:
  """Inserts a leaf at its name, and creates missing branches."""
  *parents, last = (
    key.replace(_ESCAPED, SEPARATOR) for key in name.split(SEPARATOR)
  )
  for parent in parents:
    tree = tree.setdefault(parent, {})
  tree[last] = leaf


def save(path: pathlib.Path, tree: Mapping[str, Any]) -> None:
  """Writes all leaves to an `.npz` file atomically."""
  arrays: dict[str, Any] = {
    name: np.asarray(leaf) for name, leaf in leaves(tree)
  }
  with files.replacing(path) as new, new.open('wb') as file:
    np.savez(file, **arrays)


def load(path: pathlib.Path) -> dict[str, Any]:
  """Returns the nested dicts that `save` wrote; NamedTuples become dicts."""
  tree: dict[str, Any] = {}
  for name, array in files.read_npz(path).items():
    put(tree, name, array)
  return tree
