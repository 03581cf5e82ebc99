"""Tests of server stages in the loop, with custom stages and statistics."""

import dataclasses
from typing import ClassVar

import numpy as np
import toys

from bfl_tf import server, statistics


@dataclasses.dataclass(frozen=True)
class CountExamples:
  """A custom Statistic: the number of examples."""

  calls: ClassVar[list] = []

  def accumulate(self, update, weight, reference):
    self.calls.append(update.client_id)
    return statistics.single(weight, {'count': np.float64(update.num_examples)})

  def finalize(self, sums, reference):
    return float(sums.value('count')), {'examples_seen': 1}


@dataclasses.dataclass(frozen=True)
class Shrink(server.Stage):
  """Multiplies the mean by `factor` and records its arguments."""

  factor: float = 0.5

  name: ClassVar[str] = 'shrink'
  statistics: ClassVar[tuple] = (CountExamples(),)
  seen: ClassVar[list] = []

  def init(self, model):
    return np.zeros([1])

  def __call__(self, state, reference, pooled, results, seed):
    self.seen.append((self.name, reference, pooled, results, seed.tolist()))
    mean = state.model.mean * self.factor
    # Slots of other stages stay.
    slots = {self.name: state.slots[self.name] + 1}
    model = state.model.replace_mean(mean)
    return state._replace(model=model, slots=slots), {self.name: 1}


class Again(Shrink):
  """The same stage and Statistic with another name."""

  name: ClassVar[str] = 'again'


def own(name):
  return f'{__name__}:{name}'


def test_two_custom_stages_share_one_statistic():
  CountExamples.calls.clear()
  Shrink.seen.clear()
  chain = (own('Shrink'), own('Again'))
  settings = {'Shrink.factor': 0.25, 'Again.factor': 0.25}
  experiment = toys.experiment(server_step=chain, **settings)
  plain, _ = toys.execute(toys.experiment(), 1)
  start, (state, info, _) = toys.rounds(experiment, 1)

  # The statistic is reduced once, over all clients.
  assert sorted(CountExamples.calls) == list(range(6))
  (first, *handed), (second, *later) = Shrink.seen
  assert (first, second) == ('shrink', 'again')
  for reference, pooled, results, _ in (handed, later):
    # The broadcast and the pooled model stay fixed along the chain.
    assert toys.same(reference, start.state.model)
    assert toys.same(pooled, plain.model)
    assert results[CountExamples()] == 150.0
  assert handed[-1] != later[-1]
  np.testing.assert_allclose(
    state.model.point, plain.model.point / 16, rtol=1e-6
  )
  assert (info['shrink'], info['again'], info['examples_seen']) == (1, 1, 1)
  names = {'shrink', 'again'}
  assert {k: v.tolist() for k, v in state.slots.items() if k in names} == {
    'shrink': [1],
    'again': [1],
  }


def test_a_stage_has_a_different_seed_in_every_round():
  Shrink.seen.clear()
  toys.execute(toys.experiment(server_step=(own('Shrink'),)), 2)
  first, second = (seed for *_, seed in Shrink.seen)
  assert first != second
