"""Examples that each site holds out for calibration and testing.

These are the same examples whatever the run's seed, so that results compare
across seeds (the validation share, of all sites' examples, is by the seed);
and a site's share depends on its own examples alone. Within a site each has
the same chance to be held out: a class that is rare at many small sites is as
frequent in all their shares together as at the sites, which scores and
conformal sets rest on.

References:
  W. G. Madow. On the theory of systematic sampling, II. Annals of Mathematical
  Statistics, 1949.
"""

import dataclasses
from typing import Any
import zlib

import numpy as np

from bfl_tf import seeds
from bfl_tf.data import columns


def hold_out(
  where: str, split: columns.Split, flag: str, fraction: float
) -> tuple[np.ndarray, np.ndarray]:
  """Takes a fraction of every site's examples, of each class alike.

  Args:
    where: names the data in errors.
    split: the examples; without ids, of one site.
    flag: Name of the flag of the fraction.
    fraction: Fraction of each site's examples, in (0, 1); at least one example
      per site.

  Returns:
    Sorted indices of what is held out, and of the rest.

  Raises:
    ValueError: a site has too few; it is named, with the flag.
  """
  x, y, ids = split
  held, rest = [], []
  for site, rows in split.sites or [('', np.arange(y.size))]:
    quota = max(1, round(fraction * rows.size))
    if rows.size <= quota:
      named = '' if ids is None else f'site {site!r} has '
      raise ValueError(
        f'{where}: {named}{rows.size} example(s), of which --{flag}={fraction} '
        'leaves none: lower it, add examples, or leave these out.'
      )
    own = (x, y) if ids is None else (x[rows], y[rows])
    taken = _spread(own[1], quota, _draws(flag, *own))
    held.append(rows[taken])
    rest.append(rows[~taken])
  return np.sort(np.concatenate(held)), np.sort(np.concatenate(rest))


def _draws(purpose, x, y):
  """Draws for one site; the draws do not depend on other sites."""
  code = 0
  if x.ndim == 2:
    # Of a table: without the features that other sites alone have.
    x = x[:, ~(np.isnan(x) | (x == 0)).all(axis=0)]
  # Not by the numbers of classes, which are those of all sites' together.
  _, ranks = np.unique(y, return_inverse=True)
  for array in (x, ranks.astype(np.int32)):
    code = zlib.crc32(np.ascontiguousarray(array).data, code)
  return seeds.generator(0, purpose, code)


def _spread(labels, total, rng) -> np.ndarray:
  """Returns which `total` are taken `[num_examples]`, by systematic sampling.

  Of a class a whole number next to its exact quota is taken, the larger one by
  chance: rounded to the nearest, a rare class would be left out at every site
  that is small. Each example's chance is `total / num_examples` exactly.
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
  """Takes a share of the training examples, which becomes the split `name`.

  Args:
    dataset: Data set without these examples.
    name: Name of the split.
    flag: Name of the flag of the fraction.
    fraction: Fraction of each site's examples, as of `hold_out`; 0 takes none.
    seed: Random seed; if given, the fraction is of each class over all sites.

  Raises:
    ValueError: naming the flag and what to do.
  """
  if not fraction:
    return dataset
  where, said = f'--dataset={dataset.name}', f'--{flag}={fraction}'
  there, whole = dataset.splits.get(name), dataset.train
  if there is not None and len(there.y):
    raise ValueError(
      f'{said}: {where} has its own {name} examples: remove the flag.'
    )
  if seed is None:
    held, rest = hold_out(where, whole, flag, fraction)
  else:
    rng = seeds.generator(seed, flag)
    held, rest = columns.stratify(whole.y, fraction, rng)
  if not held.size:
    raise ValueError(f'{said} leaves no {name} example of {where}: raise it.')
  splits: dict[str, Any] = {name: whole.take(held), 'train': whole.take(rest)}
  return dataclasses.replace(dataset, rows=dataset.row_numbers[rest], **splits)
