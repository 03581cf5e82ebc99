"""Checkpoints: all of the state, the newest that can be read."""

import numpy as np
import toys

from bfl_tf import federation, weights
from bfl_tf.runs import checkpoints


def state(round_index, seed=0):
  rng = np.random.default_rng(seed)
  sizes = 5, 5, 3, 0, (2, 5)
  vectors = (np.float32(rng.normal(size=size)) for size in sizes)
  return federation.State(
    round=round_index,
    model=weights.Weights(*vectors),
    slots={'momentum': rng.normal(size=8), 'pair': {'a': np.ones([2, 3])}},
    memories={
      client: {'part': {'rounds': np.int32(client), 'sums': rng.normal(size=2)}}
      for client in (7, 12)
    },
  )


def test_all_of_the_state_comes_back_bit_for_bit(tmp_path):
  saved = state(3)
  checkpoints.save(saved, tmp_path)
  restored = checkpoints.restore(tmp_path)
  assert restored.round == 3
  assert set(restored.memories) == {7, 12}
  assert toys.same(saved, restored)


def test_two_are_kept(tmp_path):
  for round_index in range(7, 11):
    checkpoints.save(state(round_index), tmp_path)
  names = sorted(path.name for path in tmp_path.iterdir())
  assert names == ['state-10.npz', 'state-9.npz']
  # A number, and no text.
  assert checkpoints.restore(tmp_path).round == 10
