"""Conversion between nested dicts of arrays and flat names."""

from collections.abc import Iterator, Mapping
import pathlib
from typing import Any

import numpy as np

from bfl_tf import files

SEPARATOR = '|'


def leaves(tree: Mapping[str, Any], prefix: str = '') -> Iterator:
  """Yields the name and value of each leaf, such as `('model|loc', leaf)`."""
  for key, value in tree.items():
    name = f'{prefix}{key}'
    if hasattr(value, '_asdict'):
      value = value._asdict()
    if isinstance(value, Mapping):
      yield from leaves(value, name + SEPARATOR)
    else:
      yield name, value


def put(tree: dict[str, Any], name: str, leaf: Any) -> None:
  """Inserts a leaf at its name, and creates missing branches."""
  *parents, last = name.split(SEPARATOR)
  for parent in parents:
    tree = tree.setdefault(parent, {})
  tree[last] = leaf


def bad_key(tree: Any) -> str | None:
  """Returns a key with the separator, from which names cannot be split."""
  items = tree.items() if isinstance(tree, Mapping) else ()
  return next(
    (
      found
      for key, value in items
      if (found := key if SEPARATOR in str(key) else bad_key(value))
    ),
    None,
  )


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
