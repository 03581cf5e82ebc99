"""A client part that needs a server stage is sent that stage's slot."""

import dataclasses
from typing import ClassVar

import numpy as np
import pytest
import tensorflow as tf
import toys


@dataclasses.dataclass(frozen=True)
class Follower:
  """A client part that remembers the slot that it was sent."""

  name: ClassVar[str] = 'follower'
  needs: ClassVar[str | None] = 'momentum'

  def init_memory(self, model):
    return np.zeros([model.mean.size])

  def begin(self, start, shared, memory):
    return shared

  def finish(self, model, carry, trace):
    return model, tf.zeros([0]), carry


class FollowsShrink(Follower):
  """Needs a stage of a user's own."""

  needs: ClassVar[str | None] = 'shrink'

  def init_memory(self, model):
    return np.zeros([1])


def own(name):
  return f'{__name__}:{name}'


def test_a_part_is_sent_the_slot_of_the_stage_it_needs():
  experiment = toys.experiment(client_parts=(own('Follower'),))
  # Placed first, though --server_step does not say so.
  assert [stage.name for stage in experiment.method.stages] == ['momentum']
  before, _ = toys.play(experiment, 1)
  state, (_, info) = toys.play(experiment, 2)
  for memory in state.memories.values():
    assert toys.same(memory['follower'], before.slots['momentum'])
  assert np.any(before.slots['momentum'])
  assert info['bytes_down'] == 6 * 15 * (4 + 8)
  both = {'server_step': ('test_stages:Shrink', 'momentum')}
  experiment = toys.experiment(client_parts=(own('Follower'),), **both)
  names = [stage.name for stage in experiment.method.stages]
  assert sorted(names) == ['momentum', 'shrink']


def test_a_part_may_need_a_users_stage():
  experiment = toys.experiment(
    client_parts=(own('FollowsShrink'),), server_step=('test_stages:Shrink',)
  )
  state, _ = toys.play(experiment, 2)
  for memory in state.memories.values():
    assert memory['follower'].tolist() == [1]
  with pytest.raises(ValueError, match='shrink'):
    toys.experiment(client_parts=(own('FollowsShrink'),))
