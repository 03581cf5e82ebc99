"""Tests of the projection around the broadcast and around zero."""

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


def test_projected_weights_equal_those_computed_by_hand():
  start = tf.constant([1.0, 1.0])
  # The distance from (1, 1) to (4, 5) is 5; a radius of 2.5 is half of it.
  mean, (_, hits) = project(clients.Projection(2.5), start, [4.0, 5.0])
  assert mean.numpy().tolist() == [2.5, 3.0] and hits == 1
  mean, (_, hits) = project(clients.Projection(5.0), start, [4.0, 5.0])
  assert mean.numpy().tolist() == [4.0, 5.0] and hits == 0
  around_zero = clients.Projection(2.5, 'model')
  mean, (_, hits) = project(around_zero, start, [3.0, 4.0])
  assert mean.numpy().tolist() == [1.5, 2.0] and hits == 1


def test_the_fraction_of_projected_steps_is_reported():
  """Each step adds 1 to 15 weights, so the distance is sqrt(15) t."""

  @dataclasses.dataclass(frozen=True)
  class Push(toys.Idle):
    name: ClassVar[str] = 'push'

    def after_step(self, mean, carry, step):
      return mean + 1.0, carry

  # The distance is 3.9 and 7.7 after two steps; later steps leave the ball.
  parts = (Push(), clients.Projection(8.0))
  worker = toys.worker(parts=parts, batch_size=10)
  begin = toys.start(worker)
  result = worker.train(toys.task(begin, rate=1e-6))
  moved = np.linalg.norm(result.model.mean - begin.mean)
  assert moved == pytest.approx(8, rel=1e-6)
  assert result.trace.report['projection_hit_fraction'] == pytest.approx(0.6)
