"""What each site holds out of its own examples, to calibrate and to test.

The same examples whatever the run's seed, so that results compare across
seeds; and a site's share depends on its own examples alone. Within a site each
has the same chance to be held out: a class that is rare at many small sites is
as frequent in all their shares together as at the sites, which scores and
conformal sets rest on.

References:
  W. G. Madow. On the theory of systematic sampling, II. Annals of Mathematical
  Statistics, 1949.
"""

import dataclasses
from typing import NamedTuple
import zlib

import numpy as np

from bfl_tf import seeds
from bfl_tf.datasets import columns


class Share(NamedTuple):
  """A fraction to hold out.

  Attributes:
    flag: that says it.
    fraction: of each site's examples, in [0, 1).
    fix: what to do where a site has too few.
    rest: what the others are for.
  """

  flag: str
  fraction: float
  fix: str = 'leave it out'
  rest: str = 'train on'


def hold_out(
  where: str, split: columns.Split, share: Share
) -> tuple[np.ndarray, np.ndarray]:
  """Takes a fraction of every site's examples, of each class alike.

  Args:
    where: names the data in errors.
    split: the examples; without ids, of one site.
    share: what to hold out; of each site at least one example.

  Returns:
    Sorted indices of what is held out, and of the rest.

  Raises:
    ValueError: a site has too few; it is named, with the flag.
  """
  x, y, ids = split
  if not share.fraction:
    return np.arange(0), np.arange(y.size)
  held, rest = [], []
  for site, rows in split.sites or [('', np.arange(y.size))]:
    quota = max(1, round(share.fraction * rows.size))
    if rows.size <= quota:
      named = '' if ids is None else f'site {site!r} has '
      raise ValueError(
        f'{where}: {named}{rows.size} example(s) left to hold --{share.flag}='
        f'{share.fraction} out of, which leaves none to {share.rest}: '
        f'{share.fix}.'
      )
    own = (x, y) if ids is None else (x[rows], y[rows])
    taken = _spread(own[1], quota, _draws(share.flag, *own))
    held.append(rows[taken])
    rest.append(rows[~taken])
  return np.sort(np.concatenate(held)), np.sort(np.concatenate(rest))


def _draws(purpose, x, y):
  """Of a site by what it has: who else is there changes nobody's share."""
  code = 0
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


def take_calibration(
  dataset: columns.Dataset, fraction: float
) -> columns.Dataset:
  """Takes each site's calibration share out of its training examples."""
  if not fraction:
    return dataset
  if dataset.calibration is not None:
    raise ValueError(
      f'--calibration_fraction={fraction}, but --dataset={dataset.name} brings '
      'its own calibration examples.'
    )
  share = Share(
    'calibration_fraction',
    fraction,
    'leave it out, or set --calibration_fraction=0',
  )
  held, rest = hold_out(f'--dataset={dataset.name}', dataset.train, share)
  taken = dataclasses.replace(
    dataset,
    train=dataset.train.take(rest),
    calibration=dataset.train.take(held),
    rows=dataset.row_numbers[rest],
  )
  said = f'{share.flag}={fraction}'
  check_trained(said, taken, dataset.train.y, dataset.class_names)
  return taken


def check_trained(
  share: str,
  dataset: columns.Dataset,
  labels: np.ndarray,
  names: tuple[str, ...] = (),
) -> None:
  """Refuses a share that leaves no training example of a class.

  Args:
    share: the flag that says it, with its value.
    dataset: what is left.
    labels: of all that were there.
    names: of the classes, where they have any.
  """
  missing = np.setdiff1d(labels, dataset.train.y)
  if missing.size:
    name = names[missing[0]] if names else missing[0]
    raise ValueError(
      f'--dataset={dataset.name}: --{share} leaves no row of class '
      f'{str(name)!r} to train on: lower it, or add rows of that class.'
    )
