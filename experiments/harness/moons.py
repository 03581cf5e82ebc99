"""Two moons whose left and right halves belong to two clients."""

import dataclasses

import numpy as np
from sklearn import datasets

from bfl_tf import data


def both() -> data.Dataset:
  """Returns two moons, whose left and right halves are two clients."""
  x, y = datasets.make_moons(600, noise=0.15, random_state=0)
  x = x.astype(np.float32)
  whole = data.from_arrays('moons', x[:400], y[:400], x[400:], y[400:])
  ids = np.where(whole.train.x[:, 0] < 0.5, 'left', 'right')
  train = whole.train._replace(ids=ids)
  return dataclasses.replace(whole, train=train)


def left() -> data.Dataset:
  """Returns the examples of the left client."""
  return _half('left')


def right() -> data.Dataset:
  """Returns the examples of the right client."""
  return _half('right')


def _half(name):
  whole = both()
  rows = np.flatnonzero(whole.train.ids == name)
  return dataclasses.replace(whole, train=whole.train.take(rows))
