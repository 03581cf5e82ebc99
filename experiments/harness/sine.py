"""A sine that two clients observe on two intervals, and a linear model."""

import numpy as np
import tensorflow as tf
import tf_keras

from bfl_tf import data, models

NOISE = 0.1
_ENDS = {'left': (-4.0, -1.5), 'right': (1.5, 4.0)}


def sine() -> data.Dataset:
  """Returns 60 noisy values of the sine for each client."""
  rng = np.random.default_rng(0)
  x = np.concatenate([rng.uniform(*ends, 60) for ends in _ENDS.values()])
  y = np.sin(x) + NOISE * rng.normal(size=x.size)
  x, y = x.astype(np.float32)[:, np.newaxis], y.astype(np.float32)
  rows = data.Split(x, y, np.repeat([*_ENDS], 60))
  none = data.Split(x[:0], y[:0])
  return data.Dataset('sine', 0, rows, none, rows)


def bumps(input_shape, num_classes, variant, kernel_initializer, seed):
  """A linear model on 30 Gaussian bumps."""
  centers = tf.linspace(-2.2, 2.2, 30)
  inputs = tf_keras.Input(input_shape)
  features = tf.exp(-0.5 * tf.square((inputs - centers) / 0.2))
  blocks = models.Blocks(models.VARIANTS[variant](), kernel_initializer, seed)
  return tf_keras.Model(inputs, blocks.dense(num_classes, features))
