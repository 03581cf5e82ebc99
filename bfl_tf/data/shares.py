"""Examples that each site holds out for calibration and testing.

These examples do not depend on the run's seed, so that results of different
seeds are comparable. Only the validation split, taken over all sites, depends
on it. A site's share depends on its own examples alone. All examples of a site
have the same probability of being held out. Scores and conformal sets need
this: a class that is rare at many small sites keeps its frequency.

References:
  W. G. Madow. On the theory of systematic sampling, II. Annals of Mathematical
  Statistics, 1949.
"""

from collections.abc import Sequence
import dataclasses
from typing import Any
import zlib

import numpy as np

from bfl_tf import seeds
from bfl_tf.data import columns


def hold_out(
  where: str, split: columns.Split, flag: str, fraction: float
) -> tuple[np.ndarray, np.ndarray]:
  """Takes a fraction of every site's examples, about the same of each class.

  Returns sorted indices of the held-out examples, at least one per site, and of
  the rest. Errors name the data `where` and the flag of the fraction. If there
  are groups, the fraction is one of groups, and each counts as one example.
  """

  def divide(first):
    some = split.take(first)
    is_held = np.zeros(some.y.size, bool)
    for site, rows in some.sites or [('', np.arange(some.y.size))]:
      quota = max(1, round(fraction * rows.size))
      if rows.size <= quota:
        named = f'site {site!r} has ' if site else ''
        raise ValueError(
          f'{where}: {named}{rows.size} example(s) or group(s), of which '
          f'--{flag}={fraction} leaves none: lower it, add more, or leave out '
          'this site with a larger --min_site_examples.'
        )
      x, y = some.x[rows], some.y[rows]
      is_held[rows] = _spread(y, quota, _draws(flag, x, y))
    return np.flatnonzero(is_held), np.flatnonzero(~is_held)

  held_out, rest = columns.whole_groups(split.groups, divide)
  return held_out, rest


def without_small_sites(
  dataset: columns.Dataset, name: str, least: int
) -> columns.Dataset:
  """Leaves out sites that have fewer than `least` examples in a split.

  The notes of the data set then list these sites. The split `train` changes all
  splits, and `test` only itself.
  """
  sizes = {site: len(rows) for site, rows in dataset.splits[name].sites}
  small = [site for site, size in sizes.items() if size < least]
  if least and len(small) == len(sizes):
    raise ValueError(
      f'--min_site_examples={least}: --dataset={dataset.name} has no site with '
      f'as many {name} examples: lower it, or remove it.'
    )
  if not small:
    return dataset
  splits: dict[str, Any] = {}
  for each in dataset.splits if name == 'train' else [name]:
    split = dataset.splits[each]
    if split.ids is not None:
      is_large = ~np.isin(np.asarray(split.ids).astype(str), small)
      splits[each] = split.take(np.flatnonzero(is_large))
      if each == 'train':
        splits['rows'] = dataset.row_numbers[is_large]
  shown = ', '.join(f'{site!r} ({sizes[site]})' for site in small[:20])
  note = (
    f'left out: {len(small)} sites with fewer than {least} {name} examples: '
    f'{shown}{" ..." * (len(small) > 20)}'
  )
  return dataclasses.replace(dataset, notes=(*dataset.notes, note), **splits)


def _draws(purpose, x, y):
  """Returns the random generator of a site, independent of other sites."""
  code = 0
  if x.ndim == 2:
    # Features that only other sites have are removed from a table.
    x = x[:, ~(np.isnan(x) | (x == 0)).all(axis=0)]
  # Class numbers depend on the classes of all sites; ranks do not.
  _, ranks = np.unique(y, return_inverse=True)
  for array in (x, ranks.astype(np.int32)):
    code = zlib.crc32(np.ascontiguousarray(array).data, code)
  return seeds.generator(0, purpose, code)


def _spread(labels, total, rng) -> np.ndarray:
  """Returns a mask `[num_examples]` of `total` systematically sampled examples.

  The quota of a class is rounded up or down at random. Rounding to the nearest
  number would leave out a rare class at every small site. Each example has the
  probability `total / num_examples` exactly.
  """
  shuffled = rng.permutation(labels.size)
  line = shuffled[np.argsort(labels[shuffled], kind='stable')]
  places = total * np.arange(labels.size + 1) + rng.integers(labels.size)
  taken = np.zeros(labels.size, bool)
  taken[line] = np.diff(places // labels.size) > 0
  return taken


def take(
  dataset: columns.Dataset,
  name: str,
  flag: str,
  fraction: float,
  seed: int | None = None,
) -> columns.Dataset:
  """Moves a share of the training examples to the split `name`.

  The share is a fraction of each site's examples, as in `hold_out`. With a
  random seed, it is a fraction of each class over all sites.
  """
  if not fraction:
    return dataset
  where, setting = f'--dataset={dataset.name}', f'--{flag}={fraction}'
  there, whole = dataset.splits.get(name), dataset.train
  if there is not None and len(there.y):
    raise ValueError(
      f'{setting}: {where} has its own {name} examples: remove the flag.'
    )
  if seed is None:
    rows, rest = hold_out(where, whole, flag, fraction)
  else:
    rng = seeds.generator(seed, flag)
    rows, rest = columns.whole_groups(
      whole.groups,
      lambda first: columns.stratify(whole.strata[first], fraction, rng),
    )
  if not (rows.size and rest.size):
    kind, fix = ('training', 'lower') if rows.size else (name, 'raise')
    raise ValueError(
      f'{setting} leaves no {kind} example of {where}: {fix} it.'
    )
  splits: dict[str, Any] = {name: whole.take(rows), 'train': whole.take(rest)}
  return dataclasses.replace(dataset, rows=dataset.row_numbers[rest], **splits)


def test_clients(
  y_train: np.ndarray,
  y_test: np.ndarray,
  clients: Sequence[np.ndarray],
  seed: int,
) -> np.ndarray:
  """Assigns each test example to one client.

  The test examples of a class are divided in proportion to the numbers of
  training examples of this class, rounded so that every example is assigned. A
  client without training examples of a class has no test examples of it. The
  result `[num_test]` is the client of each test example; -1 for a class that no
  client has.
  """
  client = np.full(len(y_test), -1)
  generator = seeds.generator(seed, 'test_clients')
  for label in np.unique(y_test):
    counts = np.array([np.sum(y_train[rows] == label) for rows in clients])
    if counts.any():
      rows = generator.permutation(np.flatnonzero(y_test == label))
      ends = np.round(np.cumsum(counts) / counts.sum() * len(rows)).astype(int)
      client[rows] = np.repeat(
        np.arange(len(clients)), np.diff(ends, prepend=0)
      )
  return client
