"""Tests of clients with independent initial weights."""

import functools
import types

import numpy as np
import tensorflow as tf
import tf_keras
import toys

from bfl_tf import parts, weights
from experiments.papers.fl_swag import independent_init

PARTS = (independent_init.IndependentInit(),)
TINY = 1e-9  # A learning rate that leaves the initial weights.


@functools.cache
def trainer(parts):
  worker = toys.worker(parts=parts)
  return worker, toys.start(worker)


def started(seed, parts=PARTS, epochs=1):
  worker, begin = trainer(parts)
  begin = begin._replace(point=begin.point + np.float32(0.25))
  task = toys.task(begin, range(48), epochs=epochs, rate=TINY, seed=seed)
  return begin, worker.train(task).model


def test_clients_draw_their_initial_kernels_and_keep_the_biases():
  draws = []
  for seed in range(40):
    begin, model = started(seed)
    np.testing.assert_allclose(model.point[12:], begin.point[12:], atol=1e-6)
    draws.append(model.point[:12])
  draws = np.array(draws)
  assert len(np.unique(draws.round(6))) == draws.size
  # The variance is 2 / 4; the bounds are five standard errors.
  error = 1 / np.sqrt(draws.size)
  assert abs(draws.mean()) < 5 * error * np.sqrt(0.5)
  assert abs(draws.var() - 0.5) < 5 * error * np.sqrt(2) * 0.5


def test_initial_kernels_are_drawn_once_per_training():
  _, one = started(3, epochs=1)
  _, ten = started(3, epochs=10)
  np.testing.assert_allclose(one.point, ten.point, atol=1e-5)


def test_the_variance_of_a_depthwise_kernel_counts_one_input_channel():
  layers = tf_keras.layers
  network = tf_keras.Sequential([
    tf_keras.Input((8, 8, 40)), layers.DepthwiseConv2D(3), layers.Conv2D(1, 3),
  ])  # fmt: skip
  layout = weights.Layout.of(network)
  part = independent_init.IndependentInit(run=parts.RunFacts(layout=layout))
  first = types.SimpleNamespace(index=tf.constant(0), seed=tf.constant([0, 1]))
  drawn, _ = part.after(tf.zeros([layout.num_trainable()]), (), first)
  kernel, _, other, _ = weights.unflatten(drawn, layout.shapes)
  # 360 weights each of variance 2 / 9 and 2 / 360; five standard errors.
  for tensor, variance in ((kernel, 2 / 9), (other, 2 / 360)):
    assert abs(np.var(tensor) / variance - 1) < 5 * np.sqrt(2 / 360)
