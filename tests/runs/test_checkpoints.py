"""Tests of checkpoints."""

import numpy as np
import pytest
import toys

from bfl_tf import federation, files, run_files, weights
from bfl_tf.runs import checkpoints


def state(round_index, seed=0):
  rng = np.random.default_rng(seed)
  sizes = 5, 5, 3, 0, (2, 5)
  vectors = (np.float32(rng.uniform(size=size)) for size in sizes)
  return federation.State(
    round=round_index,
    model=weights.Weights(*vectors),
    slots={'momentum': rng.normal(size=8), 'a|b': {'a|': np.ones([2, 3])}},
    memories={
      client: {'part': {'r|s': np.int32(client), 'sums': rng.normal(size=2)}}
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
  newer = {client: {'part': {'r|s': np.int32(99), 'sums': np.ones(2)}}
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


RUN = '# version\n--seed=0\n--num_rounds=3\n--num_workers=1\n'


def two_checkpoints(path, flags=RUN):
  """Writes two checkpoints; returns the content of all files at each."""
  path.mkdir()
  (path / run_files.FLAGS).write_text(flags)
  saved = checkpoints.save(state(3), path)
  first = contents(path)
  changed = saved.memories | {12: state(3, 1).memories[12]}
  saved = checkpoints.save(saved._replace(memories=changed), path)
  # With one more write the memories of the first checkpoint are overwritten.
  changed = saved.memories | {12: state(3, 2).memories[12]}
  checkpoints.save(saved._replace(memories=changed), path)
  return first, contents(path)


def contents(path):
  return {each.name: each.read_bytes() for each in path.iterdir()}


CHECKPOINT, MEMORIES = run_files.CHECKPOINT, run_files.MEMORIES


@pytest.mark.parametrize(
  'name, damaged',
  [
    (CHECKPOINT, lambda first, last, other: first[CHECKPOINT]),
    (CHECKPOINT, lambda first, last, other: other[CHECKPOINT]),
    (MEMORIES, lambda first, last, other: first[MEMORIES]),
    (MEMORIES, lambda first, last, other: other[MEMORIES]),
    (MEMORIES, lambda first, last, other: last[MEMORIES][:100]),
    (MEMORIES, lambda first, last, other: bytes(len(last[MEMORIES]))),
    (CHECKPOINT, lambda first, last, other: b'PK'),
  ],
)
def test_files_that_do_not_belong_together_are_rejected(
  tmp_path, name, damaged
):
  path = tmp_path / 'run'
  first, last = two_checkpoints(path)
  _, other = two_checkpoints(tmp_path / 'other', '--seed=1\n')
  (path / name).write_bytes(damaged(first, last, other))
  with pytest.raises(files.UnreadableError, match=r'npz|bin'):
    checkpoints.restore(path)
  # The number of rounds and flags of the machine do not identify a run.
  longer = RUN.replace('=3', '=9').replace('=1', '=2')
  (path / name).write_bytes(last[name])
  (path / run_files.FLAGS).write_text(longer)
  assert checkpoints.restore(path).round == 3


def test_a_memory_with_a_wrong_bit_is_rejected_when_it_is_read(tmp_path):
  _, last = two_checkpoints(tmp_path / 'run')
  path = tmp_path / 'run' / MEMORIES
  for byte in range(0, len(last[MEMORIES]), 7):
    changed = bytearray(last[MEMORIES])
    changed[byte] ^= 1
    path.write_bytes(changed)
    try:
      restored = dict(checkpoints.restore(path.parent).memories)
    except files.UnreadableError:
      continue
    # The byte belongs to no memory of the checkpoint.
    path.write_bytes(last[MEMORIES])
    assert toys.same(restored, dict(checkpoints.restore(path.parent).memories))
