"""Wrong user-supplied code for every role, for tests of errors.

Do not copy this code; docs/your_own.md has working examples.
"""

import sys

import numpy as np
import tf_keras

from bfl_tf import parts, training
from bfl_tf.server import pooling
from bfl_tf.server.pooling import rules


def data():
  rng = np.random.default_rng(0)
  y = np.arange(60) % 3
  x = rng.normal(size=[60, 3]) + 3 * np.eye(3)[y]
  return x, y, x, y


def reading():
  return np.load('no_such_array.npz')


def half(labels, num_clients):
  return np.array_split(np.arange(len(labels) // 2), num_clients)


def raising(labels):
  return {}['site']


def softmax(input_shape, num_classes):
  layer = tf_keras.layers.Dense(num_classes, activation='softmax')
  return tf_keras.Sequential([tf_keras.Input(input_shape), layer])


def seven(input_shape):
  layer = tf_keras.layers.Dense(7)
  return tf_keras.Sequential([tf_keras.Input(input_shape), layer])


class NoMean(rules.Rule):
  def summands(self, q, w, q0):
    return w * q.mean, w * q.variance

  def moments(self, sums, totals, q0):
    return rules.Gaussian(sums[0] * np.nan, sums[1]), 0


class OneMean(NoMean):
  def moments(self, sums, totals, q0):
    return rules.Gaussian(sums[0].mean(), sums[1].mean()), 0


class Named(NoMean):
  def step(self, model, sums, slot, ctx):
    return parts.Outcome(model, slot, {'round': 1})


class Falling(training.Schedule):
  def rate(self, rate, round_index, num_rounds):
    return -rate


class Nothing:
  pass


class Zero(pooling.Weighting):
  def weigh(self, update, reference):
    return 0.0, 0


class Raising(parts.Server):
  name = 'raising'

  def step(self, model, sums, slot, ctx):
    return {}['slot']


class Accurate(parts.Server):
  name = 'accurate'

  def step(self, model, sums, slot, ctx):
    return parts.Outcome(model, slot, {'accuracy': 0.99})


class NoName(parts.Local):
  pass


class IntMemory(NoName):
  name = 'int_memory'

  def memory(self, model):
    return 0


class Quitting(NoName):
  name = 'quitting'

  def begin(self, ctx, memory):
    sys.exit(0)


class BadGradient(parts.Local):
  name = 'bad_gradient'

  def gradient(self, gradient, mean, carry, step):
    return mean.no_such_attribute
