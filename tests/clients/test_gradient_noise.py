"""Tests of gradient noise: distribution and seeds."""

import dataclasses
from typing import ClassVar

import numpy as np
import pytest
import toys

from experiments.papers.noniid_techniques import gradient_noise


@dataclasses.dataclass(frozen=True)
class NoGradient(toys.Idle):
  """Removes the gradient, so that only noise remains."""

  name: ClassVar[str] = 'no_gradient'

  def gradient(self, gradient, mean, carry, step):
    return 0.0 * gradient


def train(*parts, seeds=(0,)):
  """Returns the initial weights and the final weights by seed."""
  worker = toys.worker(parts=parts, batch_size=10)
  begin = toys.start(worker)
  jobs = [toys.task(begin, seed=seed, rate=1.0, epochs=20) for seed in seeds]
  return begin, [worker.train(task).model for task in jobs]


def test_the_noise_variance_adds_up_over_steps():
  noise = gradient_noise.GradientNoise(0.01)
  begin, ends = train(NoGradient(), noise, seeds=range(40))
  walk = np.array([end.point - begin.point for end in ends])
  # 100 steps have variance 1e-4 each; 600 draws, 5 standard errors.
  error = np.sqrt(2 / walk.size)
  assert walk.var() == pytest.approx(0.01, rel=5 * error)
  assert abs(walk.mean()) < 5 * 0.1 / np.sqrt(walk.size)


def test_noise_depends_on_the_seed_and_not_on_other_parts():
  """Draws depend on the step, the part and the seed of the training."""
  noise = gradient_noise.GradientNoise(0.1)
  _, (first, same, other) = train(NoGradient(), noise, seeds=(0, 0, 1))
  _, (again,) = train(noise, NoGradient(), noise)
  assert toys.same(first, same)
  np.testing.assert_allclose(first.point, again.point, rtol=1e-6)
  assert not toys.same(first, other)
