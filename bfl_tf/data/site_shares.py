"""Test examples for the clients of a partition."""

from collections.abc import Sequence

import numpy as np

from bfl_tf import seeds


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
