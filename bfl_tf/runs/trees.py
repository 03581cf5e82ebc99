"""Nested dicts and NamedTuples of arrays, by one name an array, and back."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

_SEPARATOR = '|'


def leaves(tree: Mapping[str, Any], prefix: str = '') -> Iterator:
  """Yields (name, leaf) of all: `('model|loc', leaf)`."""
  for key, value in tree.items():
    name = f'{prefix}{key}'
    if hasattr(value, '_asdict'):
      value = value._asdict()
    if isinstance(value, Mapping):
      yield from leaves(value, name + _SEPARATOR)
    else:
      yield name, value


def flatten(tree: Mapping[str, Any]) -> Iterator[tuple[str, np.ndarray]]:
  """As `leaves`, each as an array."""
  return ((name, np.asarray(leaf)) for name, leaf in leaves(tree))


def put(tree: dict[str, Any], name: str, leaf: Any) -> None:
  """Puts a leaf where its name says; branches on the way are made."""
  *parents, last = name.split(_SEPARATOR)
  for parent in parents:
    tree = tree.setdefault(parent, {})
  tree[last] = leaf
