"""Every random draw has a name: (run seed, purpose, round, client).

The name decides the bits, so a result does not depend on the order in which
clients run, on the number of workers, or on an interruption. On the host a name
is a `named` seed or a `child` of one; inside a graph `Stream` goes on from
there, and no two names share a seed.
"""

from __future__ import annotations

import zlib

import numpy as np

from bfl_tf.startup import tf


def named(run_seed: int, purpose: str, *indices: int) -> np.ndarray:
  """Returns the `[2]` int32 stateless seed of a draw.

  Args:
    run_seed: the run's `--seed`.
    purpose: Purpose of the draw: `local_training`, `client_sampling`.
    *indices: which one: round, client, as the purpose needs.
  """
  return _sequence(run_seed, purpose, indices).generate_state(2).view(np.int32)


def child(seed: np.ndarray, index: int) -> np.ndarray:
  """Returns the `[2]` int32 seed of the `index`-th draw under `seed`."""
  words = np.asarray(seed, np.int32).view(np.uint32).tolist()
  sequence = np.random.SeedSequence([*words, index])
  return sequence.generate_state(2).view(np.int32)


def generator(
  run_seed: int, purpose: str, *indices: int
) -> np.random.Generator:
  """Returns a NumPy generator for draws on the host; as `named`."""
  return np.random.default_rng(_sequence(run_seed, purpose, indices))


class Stream:
  """Seeds below one seed, in a graph too: `stream('step', index)`.

  The seed is hashed to both words, 64 bits: children of different seeds are
  unrelated, and a run's millions of them do not meet by chance.
  `tf.random.experimental.stateless_fold_in` hashes to one word and keeps the
  index as the other, so that two of them in a row repeat their neighbours'.
  """

  def __init__(self, seed):
    """Takes a `[2]` int32 seed, which nothing else may draw from."""
    # Philox is named since the default differs between devices.
    split = tf.random.experimental.stateless_split
    self._words = split(seed, num=1, alg='philox')[0]

  def __call__(self, purpose: str, index=0) -> tf.Tensor:
    """Returns the `[2]` int32 seed of the `index`-th draw for `purpose`."""
    code = np.uint32(zlib.crc32(purpose.encode())).view(np.int32)
    return self._words + tf.stack([code, tf.cast(index, tf.int32)])


def _sequence(run_seed, purpose, indices):
  # A CRC, since Python's own hash of a string changes with every process.
  # The length, since a sequence is padded with zeros: (5,) is not (5, 0).
  name = [run_seed, zlib.crc32(purpose.encode()), len(indices), *indices]
  return np.random.SeedSequence([int(part) for part in name])
