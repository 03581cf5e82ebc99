"""Tests of the engine on Flower: identical results and invalid replies."""

import io
import re

from flwr import app
import grids
import numpy as np
import pytest
import toys

from bfl_tf.flower import nodes
from bfl_tf.flower.engine import Engine

FLIPOUT = {'variant': 'flipout'}
SCAFFOLD = {'client_parts': ('scaffold',), 'clients_per_round': 4}
PVI = {'client_parts': ('pvi',), 'clients_per_round': 4, **FLIPOUT}
FEDBE = {
  'num_server_examples': 30, 'server_parts': ('distil',),
  'distil.optimizer': 'sgd', 'data_seed': 5,
}  # fmt: skip


def engine(change=lambda reply: reply, configs=None, **settings):
  """Returns an engine on six simulated nodes, or on the given nodes."""
  grid = grids.Grid(configs or {n: {} for n in range(6)}, change)
  found = (
    nodes.SuperNodes(grid, '') if configs else nodes.SimulatedNodes(grid, 6)
  )
  return Engine(found, **settings)


def numbered(tmp_path, numbers=range(6)):
  return {
    100 + n: {'partition-id': n, 'memory': str(tmp_path)} for n in numbers
  }


@pytest.mark.parametrize(
  'changes',
  [
    FLIPOUT,
    FLIPOUT | {'pooling': 'ws', 'weighting': 'distance'},
    SCAFFOLD,
    PVI,
    FEDBE,
    {'client_parts': ('toys:Counter',)},
    {'privacy': 'central', 'clients_per_round': 4},
  ],
)
def test_the_flower_and_local_engines_are_bit_for_bit_identical(changes):
  experiment = toys.experiment(**changes)
  local = toys.execute(experiment, 3)
  flower = toys.execute(experiment, 3, engine=engine())
  assert toys.same(flower[0], local[0])
  assert flower[1] == local[1]


@pytest.mark.parametrize('changes', [SCAFFOLD, PVI, FEDBE])
def test_nodes_that_store_their_memories_change_no_bits(changes, tmp_path):
  experiment = toys.experiment(**changes)
  state, rows = toys.execute(experiment, 3)
  deployed = engine(configs=numbered(tmp_path), run='/run')
  theirs, their_rows = toys.execute(experiment, 3, engine=deployed)
  assert toys.same(theirs.model, state.model)
  assert toys.same(theirs.slots, state.slots)
  assert their_rows == rows
  # The server stores only the round of a memory.
  assert all(set(kept) == {'round'} for kept in theirs.memories.values())
  assert set(theirs.memories) == set({} if changes is FEDBE else state.memories)


def spoiled(change):
  """Changes the reply of client 2."""

  def spoil(reply):
    numbers = reply.content['plain']
    return change(reply) if numbers['update|client_id'] == 2 else reply

  return spoil


# The nesting is so deep that a recursive function has a stack overflow.
def more(reply):
  name = 'update|extras|more' + 2000 * '|a'
  reply.content['arrays'][name] = app.Array(np.zeros(1))
  return reply


def archive(reply):
  file = io.BytesIO()
  np.savez(file, loc=np.zeros(9))
  loc = app.Array('float32', (9,), 'numpy.ndarray', file.getvalue())
  reply.content['arrays']['update|model|loc'] = loc
  return reply


BAD = {
  'is not an array': archive,
  'it cannot be read: RecursionError': more,
  "it raised KeyError: 'plain'": lambda reply: app.Message(
    app.RecordDict(), reply_to=reply
  ),
  'it raised NodeError: no power': lambda reply: app.Message(
    app.Error(0, 'no lines\nno power'), reply_to=reply
  ),
}


@pytest.mark.parametrize('reason', BAD)
def test_an_invalid_reply_is_rejected_with_its_reason(reason):
  changes = {'client_parts': ('toys:Counter',), 'variant': 'flipout'}
  experiment = toys.experiment(**changes)
  state, (row,) = toys.execute(
    experiment, 1, engine=engine(spoiled(BAD[reason]))
  )
  assert row['rejected'] == '2'
  assert re.search(reason, row['rejected_reasons'])
  assert np.all(np.isfinite(state.model.mean))


def test_a_client_without_a_reply_or_a_node_is_rejected(tmp_path):
  experiment = toys.changed(
    toys.experiment(), engine='flower', client_timeout=0.5
  )
  silent = engine(spoiled(lambda reply: None))
  configs = numbered(tmp_path, [0, 1, 3, 4, 5])
  for some, reason in (
    (silent, 'TimeoutError: nothing came within 0.5 s'),
    (engine(configs=configs, run='/run'), 'NodeError: it has no SuperNode'),
  ):
    _, (row,) = toys.execute(experiment, 1, engine=some)
    assert row['rejected_reasons'] == f'2: it raised {reason}'


def test_the_window_limits_the_number_of_pending_orders():
  wide = engine(window=3)
  toys.execute(toys.experiment(), 1, engine=wide)
  assert wide.nodes.grid.most_out == 3
