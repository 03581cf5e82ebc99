"""Tests of client parts that need the slot of a server stage."""

import numpy as np
import pytest
import toys


class FollowsShrink(toys.Follower):
  """A part that needs a custom stage."""

  server_stage = 'shrink'

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
  assert sorted(names) == ['momentum', 'shrink']


def test_a_part_may_require_a_custom_stage():
  experiment = toys.experiment(
    client_parts=(OWN,), server_step=('test_stages:Shrink',)
  )
  state, _ = toys.execute(experiment, 2)
  for memory in state.memories.values():
    assert memory['follower'].tolist() == [1]
  with pytest.raises(ValueError, match='shrink'):
    toys.experiment(client_parts=(OWN,))
