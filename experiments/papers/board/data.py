"""CIFAR-10 with the input range and the splits of both public codes."""

import dataclasses

import numpy as np

from bfl_tf import data
from bfl_tf.data.partitions import splitting


def cifar10() -> data.Dataset:
  """Returns CIFAR-10 with inputs in [0, 1] in place of standardised inputs."""
  bytes_ = data.Moments(np.ones(3, int), np.zeros(3), np.full(3, 255.0**2))
  return dataclasses.replace(data.load('cifar10'), moments=bytes_)


def flower(
  labels: np.ndarray, *, num_clients: int, seed: int
) -> list[np.ndarray]:
  """Returns a partition with the class counts of Flower's baseline.

  Flower's code ignores its `dataset_seed`: all runs have the split of seed 42.
  """
  return _capped(labels, num_clients, seed, np.random.default_rng(42))


def flower_2023(
  labels: np.ndarray, *, num_clients: int, seed: int
) -> list[np.ndarray]:
  """Returns the partition of Flower's code of October 2023, as in its table."""
  return _capped(labels, num_clients, seed, np.random.RandomState(42))


def niid_bench(
  labels: np.ndarray, *, num_clients: int, seed: int
) -> list[np.ndarray]:
  """Returns a partition with NIID-Bench's class counts for `init_seed=seed`."""
  return _capped(labels, num_clients, seed, np.random.RandomState(seed))


def niid_bench_2021(
  labels: np.ndarray, *, num_clients: int, seed: int
) -> list[np.ndarray]:
  """Returns the partition of NIID-Bench's leaderboard, with seed 2020."""
  return _capped(labels, num_clients, seed, np.random.RandomState(2020))


def _capped(labels, num_clients, seed, rng):
  pools = splitting.class_pools(labels, seed)

  def mixes():
    held, found = np.zeros(num_clients), []
    for pool in pools:
      # Both codes shuffle a class before they draw its shares.
      rng.shuffle(np.arange(pool.size))
      mix = rng.dirichlet(np.full(num_clients, 0.5))
      # A client with the mean number of examples gets no further class. If only
      # such clients have shares, the other clients get equal shares.
      mix = (mix + 1e-300) * (held < labels.size / num_clients)
      found.append(mix / mix.sum())
      held += found[-1] * pool.size
    return np.array(found)

  return splitting.deal_mixes(pools, mixes, num_clients, 10)
