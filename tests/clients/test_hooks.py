"""Tests of the reports and checks of client parts."""

import threading
from typing import ClassVar

import numpy as np
import pytest
import tensorflow as tf
import toys

from bfl_tf import parts
from bfl_tf.federation import engine

ONE = {'num_workers': 1}


def own(name):
  return (f'{__name__}:{name}',)


class Reporter(parts.Local):
  """Reports the examples of all steps and half of the loss."""

  name = 'reporter'

  def begin(self, ctx, memory):
    return parts.Start(ctx.start, 0)

  def after(self, mean, carry, step):
    return mean, carry + tf.cast(step.num_examples, tf.int32)

  def end(self, model, carry, trace):
    # The carry began as a Python number and is a tensor here.
    report = {'examples': carry[...], 'loss': trace.loss / 2}
    return parts.Sent(model, report=report)


def test_reports_are_averaged_over_the_pooled_clients():
  changes = {'batch_size': 150, 'local_epochs': 3, **ONE}
  experiment = toys.experiment(client_parts=own('Reporter'), **changes)
  state, (info,) = toys.execute(experiment, 1)
  sizes = [len(indices) for indices in experiment.partition]
  assert info['reporter_examples'] == pytest.approx(3 * np.mean(sizes))
  assert info['reporter_loss'] == pytest.approx(info['train_loss'] / 2)
  # Reports do not change the model.
  plain, _ = toys.execute(toys.experiment(**changes), 1)
  assert toys.same(plain, state)

  @toys.Engine
  def but_the_first(*arguments):
    return (reply for reply in engine.Local()(*arguments) if reply[0])

  _, (info,) = toys.execute(experiment, 1, engine=but_the_first)
  assert info['reporter_examples'] == pytest.approx(3 * np.mean(sizes[1:]))


class Watched(parts.Local):
  """A part that reads its values as a debugger does."""

  name = 'watched'
  seen: ClassVar[list] = []

  def after(self, mean, carry, step):
    if tf.executing_eagerly():
      thread = threading.current_thread() is threading.main_thread()
      self.seen.append((thread, float(mean[0]), int(step.index)))
    return mean, carry


def test_hooks_run_uncompiled_and_in_the_main_thread_for_a_debugger():
  part = {'client_parts': (f'{__name__}:Watched',)}
  plain, eager = (
    toys.execute(toys.experiment(**part, debug=debug), 1)[0]
    for debug in (False, True)
  )
  np.testing.assert_allclose(eager.model.mean, plain.model.mean, rtol=1e-5)
  assert len(Watched.seen) >= 6 and all(main for main, *_ in Watched.seen)
