"""Tests of what parts and weightings need of others, before any training."""

import numpy as np
import test_stages
import toys

from bfl_tf import federation


class FollowsShrink(toys.Follower):
  """A part that needs a custom stage."""

  server_stage = test_stages.Shrink

  def init_memory(self, model):
    return np.zeros([1])


OWN = f'{__name__}:FollowsShrink'


def test_a_part_receives_the_slot_of_the_stage_it_requires():
  experiment = toys.experiment(client_parts=('toys:Follower',))
  # The required stage is added in front of --server_step.
  assert [stage.name for stage in experiment.method.stages] == ['momentum']
  before, _ = toys.execute(experiment, 1)
  state, (_, info) = toys.execute(experiment, 2)
  for memory in state.memories.values():
    assert toys.same(memory['follower'], before.slots['momentum'])
  assert np.any(before.slots['momentum'])
  assert info['bytes_down'] == 6 * 15 * (4 + 8)
  both = {'server_step': ('test_stages:Shrink', 'momentum')}
  experiment = toys.experiment(client_parts=('toys:Follower',), **both)
  names = [stage.name for stage in experiment.method.stages]
  assert names == ['momentum', 'shrink']


def test_clients_receive_only_the_arrays_that_their_part_reads():
  down = {}
  for name in ('feddyn', 'scaffold', 'fedlap'):
    experiment = toys.experiment(client_parts=(name,))
    state = federation.initial_state(experiment).state
    down[name] = experiment.broadcast(state).num_bytes
  # 15 weights; the control variate is float32, the start of FedLap float64.
  assert down == {
    'feddyn': 15 * 4,
    'scaffold': 15 * (4 + 4),
    'fedlap': 15 * (4 + 8),
  }


def test_a_part_may_require_a_custom_stage():
  state, _ = toys.execute(toys.experiment(client_parts=(OWN,)), 2)
  for memory in state.memories.values():
    assert memory['follower'].tolist() == [1]


class Whole(toys.Idle):
  """A part whose personal model is the global model; it has no memory."""

  def personal(self, model, memory):
    assert memory is None
    return model


def test_a_personal_model_needs_no_memory():
  pieces = toys.experiment(client_parts=(f'{__name__}:Whole',))
  state = federation.initial_state(pieces).state
  scores = federation.personal.evaluate(pieces, state, 1)
  assert scores['personal_untrained'] == 6
