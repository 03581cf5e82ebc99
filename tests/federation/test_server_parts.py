"""Tests of server parts in the loop, and of what their clients receive."""

import dataclasses
from typing import ClassVar

import numpy as np
import toys

from bfl_tf import federation, parts


@dataclasses.dataclass(frozen=True)
class Shrink(parts.Server):
  """Multiplies the mean by `factor` and records its arguments."""

  factor: float = 0.5

  name: ClassVar[str] = 'shrink'
  seen: ClassVar[list] = []

  def slot(self, model):
    return np.zeros([1])

  def terms(self, update, weight, broadcast):
    return {'examples': update.num_examples}

  def step(self, model, sums, slot, ctx):
    self.seen.append((self.name, sums['examples'], ctx))
    model = model.replace_mean(model.mean * self.factor)
    return parts.Outcome(model, slot + 1, {self.name: 1})


class Again(Shrink):
  """The same part with another name."""

  name: ClassVar[str] = 'again'


def own(name):
  return f'{__name__}:{name}'


def test_two_parts_of_a_user_see_the_same_broadcast_and_pooled_model():
  Shrink.seen.clear()
  settings = {'Shrink.factor': 0.25, 'Again.factor': 0.25}
  chain = (own('Shrink'), own('Again'))
  experiment = toys.experiment(server_parts=chain, **settings)
  plain, _ = toys.execute(toys.experiment(), 1)
  start, first, second = toys.rounds(experiment, 2)

  assert [name for name, *_ in Shrink.seen] == 2 * ['shrink', 'again']
  for _, examples, ctx in Shrink.seen[:2]:
    assert toys.same(ctx.broadcast, start.state.model)
    assert toys.same(ctx.pooled, plain.model)
    assert examples == 150
  # Each part has another seed in each round.
  assert len({tuple(ctx.seed) for *_, ctx in Shrink.seen}) == 4
  np.testing.assert_allclose(
    first.state.model.point, plain.model.point / 16, rtol=1e-6
  )
  assert first.info['shrink'] == first.info['again'] == 1
  for name in ('shrink', 'again'):
    assert second.state.slots[name].tolist() == [2]


def test_a_client_half_receives_the_slot_of_its_server_half():
  chosen = {
    'client_parts': ('toys:Follower',),
    'server_parts': (own('Shrink'),),
  }
  experiment = toys.experiment(**chosen, **{'Follower.decay': 0.5})
  # The server half of a client part precedes --server_parts.
  assert [part.name for part in experiment.plan.servers] == [
    'follower',
    'shrink',
  ]
  assert experiment.plan.servers[0].decay == 0.5
  before, _ = toys.execute(experiment, 1)
  state, (_, info) = toys.execute(experiment, 2)
  assert np.any(before.slots['follower'])
  for memory in state.memories.values():
    assert toys.same(memory['follower'], before.slots['follower'])
  assert info['bytes_down'] == 6 * 15 * (4 + 8)


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


class Whole(toys.Idle):
  """A part whose personal model is the global model; it has no memory."""

  def personal(self, model, memory):
    assert memory is None
    return model


def test_a_personal_model_needs_no_memory():
  pieces = toys.experiment(client_parts=(own('Whole'),))
  state = federation.initial_state(pieces).state
  scores, _ = federation.personal.evaluate(pieces, state)
  assert scores['personal_untrained'] == 6
