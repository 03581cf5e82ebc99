"""What may be wrong with a client's update, drawn at random."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from bfl_tf.federation import engine


class Unprintable(Exception):
  """An exception that raises when it is printed."""

  def __str__(self) -> str:
    raise RuntimeError('not even that')


def mutated(
  arrival: engine.Arrival, rng: np.random.Generator
) -> tuple[str, list[engine.Arrival]]:
  """Returns what was mutated, and what then comes of the client."""
  names = ['model', 'trace', 'num_examples', 'client_id', 'whole']
  odds = [10, 2, 2, 1, 3]
  for name, there in ('extras', arrival.update.extras), ('memory', True):
    names += [name] if there else []
    odds += [4 if name == 'extras' else 2] if there else []
  name = str(rng.choice(names, p=np.array(odds) / sum(odds)))
  if name == 'whole':
    return _whole(arrival, rng)
  if name in _WORDS:
    value = _one_of(_WORDS[name], rng)
    update = arrival.update._replace(**{name: value})
    return name, [arrival._replace(update=update)]
  if name == 'memory':
    memory = _in_tree(arrival.memory, rng)
    return name, [arrival._replace(memory=memory)]
  tree = _in_tree(getattr(arrival.update, name), rng)
  update = arrival.update._replace(**{name: tree})
  return name, [arrival._replace(update=update)]


def _whole(arrival, rng):
  other = arrival.update._replace(num_examples=1)
  came: list[Any] = _one_of(
    [
      [],
      [arrival, arrival._replace(update=other)],
      [arrival._replace(client=10**6), arrival],
      [arrival._replace(client=-1)],
      *[
        [engine.Arrival(arrival.client, None, {}, failure)]
        for failure in (
          None,
          MemoryError(),
          Unprintable(),
          ValueError('\n' * 9),
        )
      ],
      *[
        [arrival._replace(update=what)]
        for what in ({}, 'update', 3, (), [arrival.update], np.zeros(3))
      ],
    ],
    rng,
  )
  return 'whole', came


# In place of a number.
_WORDS: dict[str, list[Any]] = {
  'num_examples': [
    0, -1, 2.5, float('nan'), None, True, '10', 2**31, 2**31 - 1, 10**6, 1,
    np.int64(7), np.float32(3), np.array([1, 2]), [5], {}, 10**30,
    10**5000,
  ],
  'client_id': [
    None, -1, 10**9, '1', 1.5, float('nan'), np.array([1, 2]), [1], {}, b'1',
  ],
}  # fmt: skip


def _in_tree(tree, rng):
  """Changes one array of a structure, or the structure."""
  if rng.random() < 0.15:
    return _one_of(_STRUCTURES, rng)(tree, rng)
  pairs = _pairs(tree)
  filled = [i for i, (_, value) in enumerate(pairs) if np.size(value)]
  if not filled:
    return {'more': np.zeros(2, np.float32)}
  place = int(rng.choice(filled))
  key, value = pairs[place]
  nested = hasattr(value, 'keys')
  changed = _in_tree(value, rng) if nested else _changed(value, rng)
  return _with(tree, key, changed)


def _pairs(tree):
  named = tree._asdict() if hasattr(tree, '_asdict') else tree
  return list(named.items())


def _with(tree, key, value):
  if hasattr(tree, '_replace'):
    return tree._replace(**{key: value})
  return {**tree, key: value}


def _without(tree, rng):
  pairs = _pairs(tree)
  if not pairs:
    return None
  left_out = int(rng.integers(len(pairs)))
  return {k: v for i, (k, v) in enumerate(pairs) if i != left_out}


_STRUCTURES: list[Callable] = [
  _without,
  lambda tree, rng: None,
  lambda tree, rng: {},
  lambda tree, rng: [value for _, value in _pairs(tree)],
  lambda tree, rng: {**dict(_pairs(tree)), 'more': np.zeros(2, np.float32)},
  lambda tree, rng: {**dict(_pairs(tree)), 7: np.zeros(2, np.float32)},
  lambda tree, rng: dict.fromkeys(dict(_pairs(tree))),
  lambda tree, rng: 'text',
]


def _changed(array, rng):
  """Another array in place of one."""
  array = np.asarray(array)
  return _one_of(_ARRAYS, rng)(array, rng)


def _flipped(array, rng):
  data = bytearray(array.tobytes())
  data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
  return np.frombuffer(bytes(data), array.dtype).reshape(array.shape)


def _at_one(value):
  def change(array, rng):
    copy = np.array(array)
    if copy.dtype.kind == 'f':
      copy.reshape(-1)[rng.integers(copy.size)] = value
    return copy

  return change


def _times(factor):
  return lambda array, rng: (array * factor).astype(array.dtype)


def _noisy(array, rng):
  noise = rng.normal(size=array.shape)
  return (array + noise).astype(array.dtype)


_ARRAYS: list[Callable] = [
  *[_flipped] * 6,
  *map(_at_one, [np.nan, np.inf, -np.inf, 1e19, 1e20, -3e38, 1e-45, 0.0, -1.0]),
  *map(_times, [-1, 0, 1.5, 10, 1e6, 1e-6, 1e-30]),
  _noisy,
  lambda array, rng: rng.permutation(array.reshape(-1)).reshape(array.shape),
  lambda array, rng: None,
  lambda array, rng: array.tolist(),
  lambda array, rng: tf.constant(array),
  lambda array, rng: array.astype(np.float64),
  lambda array, rng: array.astype(np.float16),
  lambda array, rng: np.nan_to_num(array).astype(np.int32),
  lambda array, rng: array.astype(bool),
  lambda array, rng: array.astype(str),
  lambda array, rng: array.astype(object),
  lambda array, rng: array.astype('>f4'),
  lambda array, rng: array.astype(np.complex64),
  lambda array, rng: array.reshape(-1)[1:],
  lambda array, rng: np.append(array, array),
  lambda array, rng: array[None],
  lambda array, rng: array[..., None],
  lambda array, rng: np.zeros([0], array.dtype),
  lambda array, rng: array.reshape(-1)[0],
  lambda array, rng: np.ma.masked_array(array, mask=True),
  lambda array, rng: memoryview(np.ascontiguousarray(array)),
  lambda array, rng: 'text',
  lambda array, rng: {},
]


def _one_of(things, rng):
  return things[int(rng.integers(len(things)))]
