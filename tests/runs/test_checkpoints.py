"""Tests of checkpoints."""

import numpy as np
import pytest
import toys

from bfl_tf import federation, files, run_files, weights
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


def test_the_state_is_restored_bit_for_bit(tmp_path):
  saved = state(3)
  checkpoints.save(saved, tmp_path)
  restored = checkpoints.restore(tmp_path)
  assert restored.round == 3
  assert set(restored.memories) == {7, 12}
  assert toys.same(saved, restored)


def test_memories_written_after_a_checkpoint_are_not_restored(tmp_path):
  saved = checkpoints.save(state(3), tmp_path)
  newer = {client: {'part': {'rounds': np.int32(99), 'sums': np.ones(2)}}
           for client in (12, 20)}  # fmt: skip
  changed = saved._replace(memories=saved.memories | newer)
  assert toys.same(saved, state(3))
  for _ in range(2):
    # A run that is killed before its next checkpoint.
    changed.memories.write()
    assert toys.same(checkpoints.restore(tmp_path), saved)
  checkpoints.save(changed, tmp_path)
  restored = checkpoints.restore(tmp_path)
  assert toys.same(restored.memories, {7: saved.memories[7], **newer})


def test_damaged_files_of_a_run_are_rejected(tmp_path):
  checkpoints.save(state(3), tmp_path)
  for name, content, read in (
    (run_files.CHECKPOINT, b'PK', checkpoints.restore),
    (run_files.SUMMARY, b'{"final"', run_files.read_summary),
  ):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(files.UnreadableError, match=name):
      read(tmp_path)
