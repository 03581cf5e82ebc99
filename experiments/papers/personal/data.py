"""Digits of ten sites with unequal classes and shifted inputs."""

import numpy as np
from sklearn import datasets

from bfl_tf import data

_SITES = 10


def shifted_digits() -> data.Dataset:
  """Returns digits of sites with own class shares, contrast and brightness."""
  x, y = datasets.load_digits(return_X_y=True)
  rng, site = np.random.default_rng(0), np.zeros(len(x), int)
  for label in range(10):
    rows = rng.permutation(np.flatnonzero(y == label))
    ends = np.cumsum(rng.dirichlet(np.full(_SITES, 0.5)))[:-1] * rows.size
    for number, part in enumerate(np.split(rows, ends.astype(int))):
      site[part] = number
  # Every second site has inverted images.
  contrast = rng.uniform(0.4, 1.0, _SITES) * np.tile([1, -1], _SITES // 2)
  x = x * contrast[site, None] + 4 * rng.normal(size=_SITES)[site, None]
  images = x.astype(np.float32).reshape(-1, 8, 8, 1)
  splits = [
    data.Split(images[rows], y[rows].astype(np.int32), site[rows])
    for rows in np.array_split(rng.permutation(len(x)), 2)
  ]
  return data.Dataset(
    name='shifted_digits',
    num_classes=10,
    train=splits[0],
    validation=splits[0].take(np.zeros(0, int)),
    test=splits[1],
  )
