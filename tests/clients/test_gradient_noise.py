"""Tests of gradient noise: distribution and seeds."""

import numpy as np
import pytest
import tensorflow as tf

from bfl_tf import training
from experiments.papers.noniid_techniques import gradient_noise


def noise(scale, seed):
  step = training.Step(0, 0.1, tf.constant([0, seed]), 9.0)
  part = gradient_noise.GradientNoise(scale)
  return part.gradient(tf.ones([5000]), None, None, step).numpy() - 1


def test_the_noise_has_its_scale_and_depends_on_the_seed():
  first, same, other = (noise(0.1, seed) for seed in (0, 0, 1))
  assert np.array_equal(first, same) and not np.any(first == other)
  # Five standard errors of 5000 draws.
  assert first.var() == pytest.approx(0.01, rel=5 * np.sqrt(2 / 5000))
  assert abs(first.mean()) < 5 * 0.1 / np.sqrt(5000)
  assert not noise(0.0, 0).any()
