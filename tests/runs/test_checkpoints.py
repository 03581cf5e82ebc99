"""Checkpoints: all of the state, the newest that can be read."""

import numpy as np
import pytest
import toys

from bfl_tf import federation, weights
from bfl_tf.runs import checkpoints


def state(round_index, seed=0):
  rng = np.random.default_rng(seed)
  vectors = (np.float32(rng.normal(size=size)) for size in (5, 5, 3, 0))
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
  for round_index in range(4):
    checkpoints.save(state(round_index), tmp_path)
  names = sorted(path.name for path in tmp_path.glob('*.index'))
  assert names == ['state-2.index', 'state-3.index']


def test_none_is_none(tmp_path):
  assert checkpoints.restore(tmp_path) is None
  assert checkpoints.restore(tmp_path / 'missing') is None


def test_round_10_is_newer_than_round_9(tmp_path):
  for round_index in (9, 10):
    checkpoints.save(state(round_index), tmp_path)
  assert checkpoints.restore(tmp_path).round == 10


def flip(data, place):
  data = bytearray(data)
  data[int(place * len(data))] ^= 0xFF
  return bytes(data)


DAMAGES = {
  'emptied': lambda data: b'',
  'cut': lambda data: data[:10],
  'of zeros': lambda data: bytes(len(data)),
}


@pytest.mark.parametrize('file', ['data-00000-of-00001', 'index'])
@pytest.mark.parametrize('damage', DAMAGES)
def test_a_corrupt_checkpoint_gives_way_to_the_one_before(
  tmp_path, caplog, file, damage
):
  for round_index in (1, 2):
    checkpoints.save(state(round_index, round_index), tmp_path)
  path = tmp_path / f'state-2.{file}'
  path.write_bytes(DAMAGES[damage](path.read_bytes()))
  restored = checkpoints.restore(tmp_path)
  assert 'state-2 is corrupt' in caplog.text
  assert restored.round == 1
  assert toys.same(restored, state(1, 1))


def test_a_flipped_bit_of_a_weight(tmp_path, caplog):
  for round_index in (1, 2):
    checkpoints.save(state(round_index, round_index), tmp_path)
  path = tmp_path / 'state-2.data-00000-of-00001'
  data = bytearray(path.read_bytes())
  data[data.index(state(2, 2).model.loc.tobytes())] ^= 1
  path.write_bytes(data)
  assert toys.same(checkpoints.restore(tmp_path), state(1, 1))
  assert 'state-2 is corrupt' in caplog.text


def cut(data, place):
  return data[: int(place * len(data))]


@pytest.mark.parametrize('damage', [flip, cut])
@pytest.mark.parametrize('file', ['data-00000-of-00001', 'index'])
def test_wherever_it_is_damaged(tmp_path, file, damage):
  """Right or not taken: what is not read of a file may well be broken."""
  for round_index in (1, 2):
    checkpoints.save(state(round_index, round_index), tmp_path)
  path = tmp_path / f'state-2.{file}'
  data = path.read_bytes()
  for place in np.linspace(0, 1, 60, endpoint=False):
    path.write_bytes(damage(data, place))
    restored = checkpoints.restore(tmp_path)
    expected = state(restored.round, restored.round)
    assert toys.same(restored, expected), place


def test_a_missing_data_file(tmp_path, caplog):
  for round_index in (1, 2):
    checkpoints.save(state(round_index), tmp_path)
  (tmp_path / 'state-2.data-00000-of-00001').unlink()
  assert checkpoints.restore(tmp_path).round == 1
  assert 'state-2 is corrupt' in caplog.text
