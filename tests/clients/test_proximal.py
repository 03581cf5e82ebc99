"""Tests of FedProx."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
import toys

from bfl_tf import clients, weights


def trained(begin, *parts, **settings):
  worker = toys.worker(variant='flipout', parts=parts)
  return worker.train(toys.task(begin, **settings)).model


@pytest.fixture(scope='module')
def begin():
  return toys.start(toys.worker())


def after(steps, start, *parts, rate=0.2):
  worker = toys.worker(parts=parts, batch_size=50)
  return worker.train(toys.task(start, epochs=steps, rate=rate)).model


def test_two_full_batch_steps_equal_those_computed_by_hand(begin):
  """g_2 gains mu (w_1 - w_0), where w_1 = w_0 - rate g_1."""
  mu, rate = 0.7, 0.2
  part = clients.Proximal(mu)
  one, plain = after(1, begin, part), after(1, begin)
  # At the start the distance is 0.
  np.testing.assert_allclose(one.point, plain.point, rtol=1e-6, atol=1e-7)
  two, second = after(2, begin, part), after(1, plain)
  expected = second.point - rate * mu * (plain.point - begin.point)
  np.testing.assert_allclose(two.point, expected, rtol=1e-5, atol=1e-6)


def test_the_norms_penalty_pulls_kernels_and_not_biases(begin):
  """g_2 gains mu/2 (W_1 - W_0) / |W_1 - W_0| for the kernel, not the bias."""
  mu, rate = 0.7, 0.2
  part = clients.Proximal(mu, 'norms')
  one, plain = (after(1, begin, *parts).point for parts in ((part,), ()))
  # At the start the norm is 0, and so is its gradient.
  np.testing.assert_allclose(one, plain, rtol=1e-6, atol=1e-7)
  second = after(1, begin._replace(point=plain)).point
  moved = plain[:12] - begin.point[:12]
  pull = np.append(moved / np.linalg.norm(moved), np.zeros(3))
  expected = second - rate * mu / 2 * pull
  two = after(2, begin, part)
  np.testing.assert_allclose(two.point, expected, rtol=1e-5, atol=1e-6)
  # The pull is far above the tolerance.
  assert np.abs(expected - second)[:12].max() > 1e-2


def test_the_norms_penalty_is_a_sum_over_kernels_and_gammas():
  """|(3, 4)| + |(5, 12)| = 18, without bias and beta."""
  layers = [tf_keras.layers.Dense(2), tf_keras.layers.BatchNormalization()]
  model = tf_keras.Sequential([tf_keras.Input([1]), *layers])
  part = clients.Proximal(2.0, 'norms').with_layout(weights.Layout.of(model))
  start = tf.ones([8])
  penalty = part.loss(start + [3.0, 4, 7, 7, 5, 12, 7, 7], start)
  assert float(penalty) == pytest.approx(18)


def test_scales_train_freely_and_a_zero_weight_has_no_effect():
  """The distance contains only the mean, so scales train freely."""
  begin = toys.start(toys.worker(variant='flipout'))
  settings = {'epochs': 5, 'rate': 1e-3}
  held = trained(begin, clients.Proximal(900.0), **settings)
  free = trained(begin, **settings)
  for ours, theirs in zip(
    trained(begin, clients.Proximal(0.0), **settings), free
  ):
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
  moved, free_moved = (m.scale - begin.scale for m in (held, free))
  assert np.all(moved != 0)
  np.testing.assert_allclose(moved, free_moved, rtol=0.05)
