"""CIFAR-10 as both codes read it, and the very splits that they drew."""

import dataclasses

import numpy as np

from bfl_tf import data
from bfl_tf.data.partitions import splitting


def cifar10() -> data.Dataset:
  """Returns it with inputs in [0, 1] in place of standardised ones."""
  bytes_ = data.Moments(np.ones(3, int), np.zeros(3), np.full(3, 255.0**2))
  return dataclasses.replace(data.load('cifar10'), moments=bytes_)


def flower(
  labels: np.ndarray, *, num_clients: int, seed: int
) -> list[np.ndarray]:
  """Deals as many of each class as Flower's baseline does, whatever the seed.

  It hands its `dataset_seed` to nothing: all runs have the split of 42.
  """
  return _capped(labels, num_clients, seed, np.random.default_rng(42))


def flower_2023(
  labels: np.ndarray, *, num_clients: int, seed: int
) -> list[np.ndarray]:
  """Deals as Flower's code did in October 2023, when its table was made."""
  return _capped(labels, num_clients, seed, np.random.RandomState(42))


def niid_bench(
  labels: np.ndarray, *, num_clients: int, seed: int
) -> list[np.ndarray]:
  """Deals as many of each class as NIID-Bench does with `init_seed=seed`."""
  return _capped(labels, num_clients, seed, np.random.RandomState(seed))


def niid_bench_2021(
  labels: np.ndarray, *, num_clients: int, seed: int
) -> list[np.ndarray]:
  """Deals as it did when its board was made: the split of 2020 in every run."""
  return _capped(labels, num_clients, seed, np.random.RandomState(2020))


def _capped(labels, num_clients, seed, rng):
  pools = splitting.class_pools(labels, seed)

  def mixes():
    held, found = np.zeros(num_clients), []
    for pool in pools:
      # Both shuffle a class before they draw its shares.
      rng.shuffle(np.arange(pool.size))
      mix = rng.dirichlet(np.full(num_clients, 0.5))
      # Who holds the mean number of examples gets none of the next class; where
      # all shares are of such clients, the others have equal ones.
      mix = (mix + 1e-300) * (held < labels.size / num_clients)
      found.append(mix / mix.sum())
      held += found[-1] * pool.size
    return np.array(found)

  return splitting.deal_mixes(pools, mixes, num_clients, 10)
