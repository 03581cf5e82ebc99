"""Seeds of random draws by name: (run seed, purpose, round, client).

The name alone determines a draw. A result therefore does not depend on the
order of clients, the number of workers, or an interruption. On the host, seeds
come from `named` and `child`. In a graph, `Stream` derives further seeds.
"""

from __future__ import annotations

import functools
import zlib

import numpy as np

from bfl_tf.startup import tf

# The key with which TensorFlow hashes seeds.
_KEY = np.array([0x02461E293EC8F720], np.uint64)


def named(run_seed: int, purpose: str, *indices: int) -> np.ndarray:
  """Returns the `[2]` int32 stateless seed of a draw."""
  return _sequence(run_seed, purpose, indices).generate_state(2).view(np.int32)


def child(seed: np.ndarray, index: int) -> np.ndarray:
  """Returns the `[2]` int32 seed of the `index`-th draw under `seed`."""
  words = np.asarray(seed, np.int32).view(np.uint32).tolist()
  sequence = np.random.SeedSequence([*words, index])
  return sequence.generate_state(2).view(np.int32)


def generator(
  run_seed: int, purpose: str, *indices: int
) -> np.random.Generator:
  """Returns a NumPy generator for the host; arguments as in `named`."""
  return np.random.default_rng(_sequence(run_seed, purpose, indices))


class Stream:
  """Derives seeds from one seed, also in a graph: `stream('step', index)`.

  Both words of the seed are hashed. Seeds from different parents are therefore
  unrelated, and collisions in a run are unlikely.
  `tf.random.experimental.stateless_fold_in` hashes one word only and keeps the
  index as the other, so that two calls in a row can repeat a seed.
  """

  def __init__(self, seed):
    """Takes a `[2]` int32 seed, which no other draw may use."""
    self._words = split(seed)

  def __call__(self, purpose: str, index=0) -> tf.Tensor:
    """Returns the `[2]` int32 seed of the `index`-th draw for `purpose`."""
    code = np.uint32(zlib.crc32(purpose.encode())).view(np.int32)
    return self._words + tf.stack([code, tf.cast(index, tf.int32)])


def uniform(shape, seed: tf.Tensor, dtype='float32') -> tf.Tensor:
  """Returns draws from [0, 1), equal with and without XLA.

  XLA draws the same bits as TensorFlow's kernels, but makes other floats of
  them. float32 numbers are therefore made here, as by TensorFlow's kernels.
  """
  if tf.as_dtype(dtype) != tf.float32:
    # The algorithm is fixed, because the default differs between devices.
    return tf.random.stateless_uniform(shape, seed, dtype=dtype, alg='philox')
  mantissa = tf.bitwise.bitwise_and(bits(shape, seed), 2**23 - 1)
  return tf.cast(mantissa, tf.float32) * 2.0**-23


def split(seed: tf.Tensor) -> tf.Tensor:
  """Returns a `[2]` int32 seed that is unrelated to `seed`."""
  return _philox([2], seed)


def bits(shape, seed: tf.Tensor) -> tf.Tensor:
  """Returns int32 draws over the whole range, equal on all devices."""
  return _philox(shape, seed)


def _philox(shape, seed):
  """Returns the draws of `tf.random.stateless_uniform` with alg='philox'.

  That function adds 46 operations to a graph; this one adds 14.
  """
  draw = functools.partial(tf.raw_ops.StatelessRandomUniformFullIntV2, alg=1)
  counter = tf.cast(seed, tf.uint64)
  hashed = draw(shape=[2], key=_KEY, counter=counter, dtype=tf.uint64)
  counter = hashed * np.array([0, 1], np.uint64)
  return draw(shape=shape, key=hashed[:1], counter=counter, dtype=tf.int32)


def _sequence(run_seed, purpose, indices):
  # CRC32 is used because Python's hash of a string differs between processes.
  # The length tells (5,) from (5, 0), because SeedSequence pads with zeros.
  name = [run_seed, zlib.crc32(purpose.encode()), len(indices), *indices]
  return np.random.SeedSequence([int(part) for part in name])
