"""Tests of the reports and checks of client parts."""

import dataclasses
import threading
from typing import ClassVar

import numpy as np
import pytest
import tensorflow as tf
import toys

from bfl_tf.federation import engine

ONE = {'num_workers': 1}


def own(name):
  return (f'{__name__}:{name}',)


@dataclasses.dataclass(frozen=True)
class Asked(toys.Idle):
  """Records the arguments of `check`."""

  name: ClassVar[str] = 'asked'
  asked: ClassVar[list] = []

  def check(self, num_steps, num_examples):
    self.asked.append((num_steps, num_examples))


@pytest.mark.parametrize(
  'epochs, changes',
  [
    ([1, 4], {'local_epochs': 4, 'min_local_epochs': 1}),
    ([2, 9], {'local_epochs': 2, 'early_local_epochs': 9, 'early_rounds': 2}),
  ],
)
def test_the_shortest_and_longest_training_of_each_client_is_checked(
  epochs, changes
):
  Asked.asked.clear()
  experiment = toys.experiment(
    client_parts=own('Asked'), batch_size=8, num_rounds=3, **changes
  )
  expected = [
    (number * -(-len(indices) // 8), len(indices))
    for indices in experiment.partition
    for number in epochs
  ]
  assert expected == Asked.asked


@dataclasses.dataclass(frozen=True)
class Reporter(toys.Idle):
  """Reports the examples of all steps and half of the loss."""

  name: ClassVar[str] = 'reporter'

  def begin(self, start, shared, memory):
    return 0

  def after_step(self, mean, carry, step):
    return None, carry + tf.cast(step.num_examples, tf.int32)

  def report(self, carry, trace):
    # The carry began as a Python number and is a tensor here.
    return {'examples': carry[...], 'loss': trace.loss / 2}


def test_reports_are_averaged_over_the_pooled_clients():
  changes = {'batch_size': 150, 'local_epochs': 3, **ONE}
  experiment = toys.experiment(client_parts=own('Reporter'), **changes)
  state, (info,) = toys.execute(experiment, 1)
  sizes = [len(indices) for indices in experiment.partition]
  assert info['reporter_examples'] == pytest.approx(3 * np.mean(sizes))
  assert info['reporter_loss'] == pytest.approx(info['train_loss'] / 2)
  # Reports do not change the model; without them there are no columns.
  plain, (without,) = toys.execute(toys.experiment(**changes), 1)
  assert toys.same(plain, state)
  assert set(info) - set(without) == {'reporter_examples', 'reporter_loss'}
  assert info | without == info

  @toys.Engine
  def but_the_first(*arguments):
    return (reply for reply in engine.Local()(*arguments) if reply[0])

  _, (info,) = toys.execute(experiment, 1, engine=but_the_first)
  assert info['reporter_examples'] == pytest.approx(3 * np.mean(sizes[1:]))


class Watched(toys.Idle):
  """A part that reads its values as a debugger does."""

  seen: ClassVar[list] = []

  def after_step(self, mean, carry, step):
    if tf.executing_eagerly():
      thread = threading.current_thread() is threading.main_thread()
      self.seen.append((thread, float(mean[0]), int(step.index)))
    return None, carry


def test_hooks_run_uncompiled_and_in_the_main_thread_for_a_debugger():
  part = {'client_parts': (f'{__name__}:Watched',)}
  plain, eager = (
    toys.execute(toys.experiment(**part, debug=debug), 1)[0]
    for debug in (False, True)
  )
  np.testing.assert_allclose(eager.model.mean, plain.model.mean, rtol=1e-5)
  assert len(Watched.seen) >= 6 and all(main for main, *_ in Watched.seen)


@dataclasses.dataclass(frozen=True)
class Shorter(toys.Idle):
  """Its hook returns a value of another shape."""

  hook: str = 'gradient'

  def gradient(self, gradient, mean, carry, step):
    return gradient[:-1] if self.hook == 'gradient' else gradient

  def after_step(self, mean, carry, step):
    if self.hook == 'mean':
      return mean[:-1], carry
    return None, 1 if self.hook == 'carry' else carry

  def report(self, carry, trace):
    return trace.loss if self.hook == 'report' else {}


@pytest.mark.parametrize('hook', ['gradient', 'mean', 'carry', 'report'])
def test_a_result_of_another_shape_names_the_hook(hook):
  name = hook if hook in ('gradient', 'report') else 'after_step'
  with pytest.raises(ValueError, match=f'Shorter.{name} must return'):
    toys.experiment(client_parts=own('Shorter'), **{'Shorter.hook': hook})
