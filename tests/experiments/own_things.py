"""Things of one's own that go wrong, each in its way: named by flags of tests.

Not a line of it is to be imitated; those that work are in docs/your_own.md.
"""

import numpy as np
import tf_keras

from bfl_tf.pooling import rules


def data():
  rng = np.random.default_rng(0)
  y = np.arange(60) % 3
  x = rng.normal(size=[60, 3]) + 3 * np.eye(3)[y]
  return x, y, x, y


def relabeled(change, change_x=lambda x: x):
  x, y, *_ = data()
  x, y = change_x(x), change(y)
  return x, y, x, y


def one_class():
  return relabeled(np.zeros_like)


def one_hot():
  return relabeled(lambda y: np.eye(3)[y])


def rare():
  y = (np.arange(200) % 100 == 0).astype(int)
  x = np.random.default_rng(0).normal(size=[200, 3])
  return x, y, x, y


def reading():
  return np.load('no_such_array.npy')


def from_folder(folder):
  return data()


def five(labels):
  return np.array_split(np.arange(len(labels)), 5)


def shared(labels, num_clients):
  return [np.arange(len(labels))] * num_clients


def outside(labels, num_clients):
  return [k + np.arange(len(labels)) for k in range(num_clients)]


def empty(labels, num_clients):
  return [np.arange(len(labels)), *[np.arange(0)] * (num_clients - 1)]


def twice(labels, num_clients):
  return [np.zeros(2, int)] * num_clients


def fractions(labels, num_clients):
  return [np.ones(2)] * num_clients


def raising(labels):
  return {}['site']


def by_hospital(labels, hospitals):
  return hospitals


def by_id(labels, client_ids):
  return client_ids


def by_rows(labels, num_clients, rows):
  assert len(rows) == len(labels) < 60
  return np.array_split(np.argsort(rows), num_clients)


def network(input_shape, *layers):
  return tf_keras.Sequential([tf_keras.Input(input_shape), *layers])


def dense(input_shape, num_classes):
  return network(input_shape, tf_keras.layers.Dense(num_classes))


def softmax(input_shape, num_classes):
  layer = tf_keras.layers.Dense(num_classes, activation='softmax')
  return network(input_shape, layer)


def rank_three(input_shape, num_classes):
  return network(
    input_shape,
    tf_keras.layers.Dense(2 * num_classes),
    tf_keras.layers.Reshape([2, num_classes]),
  )


def seven(input_shape):
  return network(input_shape, tf_keras.layers.Dense(7))


def two(input_shape, num_classes):
  inputs = tf_keras.Input(input_shape)
  outputs = [tf_keras.layers.Dense(num_classes)(inputs) for _ in range(2)]
  return tf_keras.Model(inputs, outputs)


def unbuilt(num_classes):
  return tf_keras.Sequential([tf_keras.layers.Dense(num_classes)])


def keras_three(input_shape, num_classes):
  import keras

  return keras.Sequential(
    [keras.Input(input_shape), keras.layers.Dense(num_classes)]
  )


def forgotten():
  dense((3,), 3)


class Average(rules.Rule):
  def terms(self, q, w, q0):
    return w * q.mean, w * q.variance

  def moments(self, sums, totals, q0):
    return rules.Gaussian(*sums / totals.weight), 0


class NoMean(Average):
  def moments(self, sums, totals, q0):
    return rules.Gaussian(sums[0] * np.nan, sums[1]), 0


class Negative(Average):
  def moments(self, sums, totals, q0):
    return rules.Gaussian(sums[0], -sums[1]), 0


class NoTerms(rules.Rule):
  def moments(self, sums, totals, q0):
    return rules.Gaussian(*sums / totals.weight), 0


class Nothing:
  pass


class Zero:
  def one(self, update, reference):
    return 0.0, 0


class NotANumber:
  def one(self, update, reference):
    return float('nan'), 0


class TooFew:
  def all(self, updates, reference):
    return [1.0], 0


class NoCall:
  name, statistics = 'no_call', ()


class NoState(NoCall):
  def __call__(self, *arguments):
    return None


class Exploding(NoCall):
  name = 'exploding'

  def __call__(self, state, *arguments):
    model = state.model.replace_mean(state.model.mean * np.inf)
    return state._replace(model=model), {}


class Raising(NoCall):
  def __call__(self, *arguments):
    return {}['slot']


class NoName:
  needs = None


class NamedByNumber:
  name, needs = 7, None


class Needy:
  name, needs = 'needy', None

  def __init__(self, strength):
    self.strength = strength


class BadLoss:
  name, needs = 'bad_loss', None

  def loss(self, mean, carry):
    return mean.no_such_attribute
