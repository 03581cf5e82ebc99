"""Tests of nodes: their files, memories and numbers."""

import pathlib
import types

from flwr import app
import grids
import numpy as np
import pytest
import toys
import wines

from bfl_tf import federation, files
from bfl_tf.config.config import Config
from bfl_tf.flower import client_side, client_state, messages, nodes
from bfl_tf.runs import run_config


def flags(**changes):
  config = Config.of({'dataset': 'digits'} | changes)
  return '\n'.join(run_config.flag_lines(config))


def test_the_node_config_sets_how_a_file_is_read(tmp_path):
  *files, _ = wines.wine(tmp_path)
  own = client_side.OwnFile.of({'data': files[1], 'ignore-columns': 'a,b'})
  received = flags(partition='natural', label_column='c')
  _, dataset = client_side.read(received, own)
  assert [f.column for f in dataset.features] == list('cdefghijklm')
  with pytest.raises(ValueError, match='set --partition=natural'):
    client_side.read(flags(partition='iid'), own)


def test_the_server_sees_no_cell_of_an_unreadable_file(tmp_path):
  *files, _ = wines.wine(tmp_path)
  path = pathlib.Path(files[1])
  header, first, *rows = path.read_text('utf-8').splitlines()
  received = flags(partition='natural', num_clients=1)

  def told(*lines):
    path.write_text('\n'.join(lines), 'utf-8')
    node = {'partition-id': 0, 'data': str(path)}
    grid = grids.Grid({10: node})
    with pytest.raises(ValueError, match='have no SuperNode') as info:
      nodes.SuperNodes.of(grid, received, 1, 0.5)
    return str(info.value)

  named = 'Mrs Smith' + first[first.index(',') :]
  text = told(header, named, *rows)
  assert "column 'a': 1 texts" in text and 'Smith' not in text
  # A file without a header: its first row must not be taken for one.
  assert 'Smith' not in told(named, *rows)


def test_the_node_config_sets_the_held_out_share(tmp_path):
  x, y = np.random.default_rng(0).normal(size=[60, 3]), np.arange(60) % 3
  np.savez(tmp_path / 'own.npz', x=x, y=y)
  received = flags(
    partition='natural', test_fraction=0.3, validation_split=0.5,
    num_clients=1,
  )  # fmt: skip
  own = client_side.OwnFile.of(
    {'data': f'{tmp_path}/own.npz', 'test-fraction': 0.3}
  )
  _, dataset = client_side.read(received, own)
  # Validation examples are in the server's file.
  assert (len(dataset.train.y), len(dataset.test.y)) == (42, 18)
  own = own._replace(settings=(('test_fraction', 0.2),))
  with pytest.raises(
    ValueError, match=r'owner of this node set this share to 0\.2'
  ):
    client_side.read(received, own)


@pytest.fixture
def kept(tmp_path):
  """The memories of client 3: only those of accepted updates are used."""
  return client_state.MemoryFolder.of(str(tmp_path), '/run', flags(), 3)


def memory(number):
  return {'part': {'steps': np.int32(number)}, 'other': np.float32(number)}


def test_the_memory_of_a_rejected_update_is_deleted(kept):
  kept.put(0, memory(0))
  kept.put(1, memory(1))
  assert toys.same(kept.take(1), memory(1))
  assert toys.same(kept.take(0), memory(0))
  # The memory of the rejected update is deleted.
  with pytest.raises(ValueError, match='the memory of round 1 is not in'):
    kept.take(1)
  assert kept.take(-1) == {}
  assert list(kept.path.iterdir()) == []


@pytest.mark.parametrize(
  ('run', 'client', 'number'),
  [('/run', 4, 0), ('/run', 3, 1), ('/other', 3, 0), ('/run', 3, 0)],
)
def test_a_memory_that_this_round_did_not_store_is_rejected(
  kept, tmp_path, run, client, number
):
  other = client_state.MemoryFolder.of(str(tmp_path), run, flags(), client)
  other.put(number, memory(0))
  content = files.read_npz(other.path / f'round-{number}.npz')
  if (other.path, number) == (kept.path, 0):
    content['memory|other'] = np.float32(np.nan)
  kept.path.mkdir(parents=True, exist_ok=True)
  np.savez(kept.path / 'round-0.npz', **content)
  with pytest.raises(ValueError, match=r'round-0\.npz'):
    kept.take(0)


def test_memories_that_a_checkpoint_may_need_are_kept(kept):
  for number in range(8):
    kept.take(number - 1, oldest=number - 4)
    kept.put(number, memory(number))
  # The server repeats round 5, which uses the memory of round 4.
  assert toys.same(kept.take(4, oldest=1), memory(4))
  with pytest.raises(ValueError, match='the memory of round 1 is not in'):
    kept.take(1)


def test_a_rarely_sampled_client_keeps_its_accepted_memory(kept):
  # The update of round 1 is rejected.
  for number in (0, 1):
    kept.put(number, memory(number))
  kept.take(0, oldest=40)
  kept.put(44, memory(44))
  kept.take(44, oldest=44)
  assert toys.same(kept.take(0, oldest=44), memory(0))


def test_runs_seeds_and_clients_have_separate_memories():
  def path(run, client=0, **changes):
    return client_state.MemoryFolder.of('x', run, flags(**changes), client).path

  assert path('/a') == path('/a', num_rounds=7)
  others = [path('/b'), path('/a', seed=2), path('/a', client=1)]
  assert path('/a') not in others and len(set(others)) == 3


def test_a_node_that_answers_late_is_used():
  grid = grids.Grid({7: {'partition-id': 0}})
  answer, grid.answer = grid.answer, lambda reply: None
  numbered = nodes.SuperNodes(grid, '')
  assert numbered([0]) == {}
  (number,) = numbered.pending.values()
  grid.answer = answer
  message = app.Message(messages.pack({'flags': ''}), 7, 'query')
  grid._waiting[number] = grid._state(message)
  assert numbered([0]) == {0: 7}


def test_a_number_belongs_to_its_first_node_until_it_leaves():
  configs = {7: 1, 8: 0, 9: 1, 10: 5}
  grid = grids.Grid({n: {'partition-id': c} for n, c in configs.items()})
  numbered = nodes.SuperNodes(grid, '')
  assert numbered([0, 1, 2]) == {0: 8, 1: 7}
  grid.node_configs[6] = {'partition-id': 0}
  assert numbered([0, 1]) == {0: 8, 1: 7}
  del grid.node_configs[7], grid.node_configs[8]
  assert numbered([0, 1]) == {0: 6, 1: 9}


def test_a_node_with_another_file_does_not_take_over_a_number(tmp_path):
  for number, name in enumerate('ab'):
    x, y = np.full([9, 3], number), np.arange(9) % 3
    arrays = {'x_train': x, 'y_train': y, 'x_test': x, 'y_test': y}
    np.savez(tmp_path / f'{name}.npz', **arrays)
  first, other = (f'{tmp_path}/{name}.npz' for name in 'ab')
  grid = grids.Grid({9: {'partition-id': 0, 'data': first}})
  numbered = nodes.SuperNodes(grid, flags(partition='natural', num_clients=1))
  assert numbered([0]) == {0: 9}
  grid.node_configs = {7: {'partition-id': 0, 'data': other}}
  assert numbered([0]) == numbered([0]) == {}
  grid.node_configs[8] = {'partition-id': 0, 'data': first}
  assert numbered([0]) == {0: 8}


@pytest.mark.parametrize('own', [{'memory': 'kept'}, {'data': 'own.csv'}])
def test_a_node_with_its_own_settings_rejects_an_order_of_a_simulation(own):
  experiment = toys.experiment(client_parts=('scaffold',))
  broadcast = experiment.broadcast(federation.initial_state(experiment).state)
  content = messages.pack(messages.Order(flags(), 0, broadcast, {}))
  context = types.SimpleNamespace(node_config={'partition-id': 0, **own})
  with pytest.raises(ValueError, match='settings of a node must not be sent'):
    client_side.train(types.SimpleNamespace(content=content), context)
