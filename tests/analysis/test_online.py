"""Tests of clients that join, change or leave (FL-SWAG, section 5.3)."""

import functools
import pathlib

import binaries
import fake
import numpy as np
import pytest
import toys

from bfl_tf import runs, seeds
from bfl_tf.analysis import online
from bfl_tf.config.config import Config
from bfl_tf.federation import engine

SETTINGS = {
  'client_parts': ('swag',),
  'pooling': 'product',
  'swag.rank': 2,
  'swag.period': 1,
  'batch_size': 150,
  'local_epochs': 4,
  'num_rounds': 1,
  # The random updates below are far from the broadcast.
  'max_update_norm': 0.0,
  'server_parts': ('store_updates',),
}


def built(**changes):
  return toys.experiment(**SETTINGS | changes)


def replies(experiment, state, clients, change=0):
  """Yields updates whose scales and factors differ between clients."""
  for client in clients:
    _, update = fake.reply(experiment, state, client)
    rng = seeds.generator(0, 'made', client, change)
    model = update.model
    size = model.loc.size
    rank = experiment.plan.result_spec.model.factor.shape[0]
    drawn = {
      'loc': rng.normal(size=size),
      'scale': rng.uniform(0.1, 1.0, size),
      'factor': rng.normal(0, 0.3, [rank, size]),
      'buffers': rng.uniform(1, 2, model.buffers.size),
    }
    drawn = {name: np.float32(value) for name, value in drawn.items()}
    yield client, update._replace(model=model._replace(**drawn))


def played(experiment, left_out=None):
  """Returns the state after one round, without a client if it is left out."""

  @toys.Engine
  def others(experiment, state, clients):
    return replies(experiment, state, [k for k in clients if k != left_out])

  return toys.execute(experiment, 1, engine=others)[0]


@pytest.mark.parametrize(
  'changes',
  [
    {'pooling': 'lp', 'weighting': 'max_discrepancy'},
    {'model': 'toys:normalized', 'num_server_examples': 30,
     'batch_norm': 'recalibrate'},
    # Parts with slots and memories, which a removed client does not keep.
    {'client_parts': ('toys:Follower', 'swag')},
    {'client_parts': ('toys:Counter', 'swag')},
    {'client_parts': ('pvi',), 'pooling': 'auto', 'variant': 'flipout'},
  ],
)  # fmt: skip
def test_the_result_depends_only_on_the_current_members(changes, monkeypatch):
  monkeypatch.setattr(
    engine, 'Local', lambda k: toys.Engine(functools.partial(replies, change=k))
  )
  experiment = built(**changes)
  whole, alone = played(experiment), played(experiment, left_out=2)
  removed = online.apply(experiment, whole, online.Change('remove', 2))
  assert toys.same(removed.state.model, alone.model)
  assert toys.same(removed.state.memories, alone.memories)
  states = removed.state, alone
  slots = ({**state.slots, 'store_updates': 0} for state in states)
  assert toys.same(*slots)
  assert removed.info['bytes_up'] == removed.info['bytes_down'] == 0
  added = online.apply(experiment, alone, online.Change('add', 2))
  assert sorted(online.members(added.state)) == [0, 1, 2, 3, 4, 5]
  for client, memory in alone.memories.items():
    assert toys.same(added.state.memories[client], memory)
  sent = online.members(added.state)[2]
  assert added.info['bytes_up'] == sent.num_bytes
  # The update differs from that of the round with all clients.
  assert not toys.same(sent.model, online.members(whole)[2].model)
  there_and_back = online.apply(
    experiment, added.state, online.Change('remove', 2)
  )
  assert toys.same(there_and_back.state.model, alone.model)


def test_a_replaced_client_trains_with_the_schedule_of_the_round():
  experiment = built(
    **{'schedule': 'exponential', 'exponential.min_epochs': 2},
    local_epochs=9,
  )
  before, _ = toys.execute(experiment, 1, engine=engine.Local())
  after = online.apply(experiment, before, online.Change('replace', 1)).state
  members = [online.members(state) for state in (before, after)]
  assert all(
    toys.same(*(of[k].model for of in members)) for k in (0, 2, 3, 4, 5)
  )
  ours, theirs = (of[1] for of in members)
  assert not toys.same(ours.model, theirs.model)
  assert ours.trace.steps == theirs.trace.steps
  assert ours.trace.sum_rates == theirs.trace.sum_rates


@pytest.mark.process
def test_the_binary_removes_and_adds_a_client(tmp_path):
  config = Config(
    dataset='toys:blobs', model='logistic', variant='deterministic',
    num_clients=3, num_rounds=1, local_epochs=4, batch_size=25,
    client_parts=('swag',), pooling='product', server_parts=('store_updates',),
    settings={'swag.rank': 2, 'swag.period': 1},
  )  # fmt: skip
  runs.Run(config, tmp_path / 'run', False, draw_plots=False).execute()
  run = f'--run={tmp_path}/run'
  removed, added = binaries.drive(
    'experiments.online',
    [[run, '--remove=1'], [run, '--add=1']],
    pathlib.Path(__file__).parents[1],
  )
  assert removed[0] == added[0] == 0, (removed, added)
  assert 'clients  0, 2' in removed[1] and 'bytes up' in removed[1]
  assert 'clients  0, 1, 2' in added[1] and 'accuracy' in added[1]
