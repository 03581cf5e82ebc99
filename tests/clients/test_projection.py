"""Projection by hand, around the broadcast and around zero; and not there."""

import dataclasses
from typing import ClassVar

import numpy as np
import pytest
import tensorflow as tf
import toys

from bfl_tf import clients, training

STEP = training.Step(tf.constant(0), 0.1, tf.constant([0, 0]), 1.0)


def project(part, start, mean):
  carry = part.begin(toys.start(toys.worker())._replace(point=start), None, {})
  return part.after_step(tf.constant(mean), carry, STEP)


def test_by_hand():
  start = tf.constant([1.0, 1.0])
  # From (1, 1) to (4, 5) are 5; a ball of 2.5 ends half way.
  mean, (_, hits) = project(clients.Projection(2.5), start, [4.0, 5.0])
  assert mean.numpy().tolist() == [2.5, 3.0] and hits == 1
  mean, (_, hits) = project(clients.Projection(5.0), start, [4.0, 5.0])
  assert mean.numpy().tolist() == [4.0, 5.0] and hits == 0
  around_zero = clients.Projection(2.5, 'model')
  mean, (_, hits) = project(around_zero, start, [3.0, 4.0])
  assert mean.numpy().tolist() == [1.5, 2.0] and hits == 1


def test_a_radius_never_reached_is_not_there_bit_for_bit():
  plain = toys.worker(variant='flipout')
  job = toys.job(toys.start(plain), epochs=3)
  part = clients.Projection(1e3)
  result = toys.worker(variant='flipout', parts=(part,)).train(job)
  assert toys.same(plain.train(job).model, result.model)
  assert result.trace.report == {'projection_hit_fraction': 0}


@dataclasses.dataclass(frozen=True)
class Farthest(toys.Idle):
  """Sends how far from a centre the mean was after a step at most."""

  name: ClassVar[str] = 'farthest'
  around_zero: bool = False

  def begin(self, start, shared, memory):
    mean = start.mean
    return tf.zeros_like(mean) if self.around_zero else mean, 0.0

  def after_step(self, mean, carry, step):
    centre, farthest = carry
    return None, (centre, tf.maximum(farthest, tf.norm(mean - centre)))

  def finish(self, model, carry, trace):
    return model, carry[1][tf.newaxis], None


@pytest.mark.parametrize(
  'ball, variant', [*zip(clients.BALLS, ['deterministic', 'flipout'])]
)
def test_no_step_ends_outside(ball, variant):
  parts = (clients.Projection(0.3, ball), Farthest(ball == 'model'))
  worker = toys.worker(
    variant=variant, parts=parts, optimizer=training.SGD(0.9)
  )
  begin = toys.start(worker)
  result = worker.train(toys.job(begin, epochs=4, rate=0.5))
  # A few roundings of float32.
  assert result.extra['farthest'] == pytest.approx(0.3, rel=1e-6)
  assert 0 < result.trace.report['projection_hit_fraction'] <= 1
  # Scales are no matter of the ball: they trained on.
  assert variant == 'deterministic' or np.all(result.model.scale != begin.scale)


def test_the_share_of_steps_that_hit():
  """A part that pushes by 1 a step in each of 15 weights: sqrt(15) t."""

  @dataclasses.dataclass(frozen=True)
  class Push(toys.Idle):
    name: ClassVar[str] = 'push'

    def after_step(self, mean, carry, step):
      return mean + 1.0, carry

  # After steps 1 and 2 at 3.9 and 7.7, inside; then out at every step.
  parts = (Push(), clients.Projection(8.0))
  worker = toys.worker(parts=parts, batch_size=10)
  result = worker.train(toys.job(toys.start(worker), rate=1e-6))
  assert result.trace.report['projection_hit_fraction'] == pytest.approx(0.6)


def test_settings_are_checked():
  for settings, named in (((0,), 'radius'), ((1.0, 'cube'), 'ball')):
    with pytest.raises(ValueError, match=named):
      clients.Projection(*settings)
