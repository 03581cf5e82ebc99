"""Augmentation and normalization of a batch inside the graph."""

from __future__ import annotations

import numpy as np

from bfl_tf import seeds
from bfl_tf.startup import tf


def normalize(x: tf.Tensor, mean: np.ndarray, std: np.ndarray) -> tf.Tensor:
  """Casts to float32 and standardises the last axis; NaN becomes the mean."""
  x = tf.cast(x, tf.float32)
  if x.shape.rank == 4 and x.shape[3] > 1:
    # TensorFlow broadcasts slowly over few channels: use the rows of an image.
    width, channels = x.shape[2:]
    rows = tf.reshape(x, [-1, width * channels])
    scaled = (rows - np.tile(mean, width)) / np.tile(std, width)
    return tf.reshape(scaled, tf.shape(x))
  scaled = (x - mean) / std
  if scaled.shape.rank != 2:
    return scaled
  return tf.where(tf.math.is_nan(scaled), tf.zeros_like(scaled), scaled)


PADS = {'zeros': 'CONSTANT', 'reflect': 'REFLECT'}


def augment(
  x: tf.Tensor, seed: tf.Tensor, padding: int = 4, pad: str = 'zeros'
) -> tf.Tensor:
  """Crops each padded image at random, and flips it with probability 1/2.

  Images `[batch, height, width, channels]` of any type keep it; only the batch
  size may be unknown. A crop has one of `2 * padding + 1` offsets along each
  axis. A reflection of `PADS` does not repeat the pixel at the edge.
  """
  x = tf.convert_to_tensor(x)
  height, width = x.shape[1:3]
  uniform = seeds.uniform([tf.shape(x)[0], 3], seed)
  offsets = tf.cast(uniform[:, :2] * (2 * padding + 1), tf.int32)
  flipped = uniform[:, 2:] < 0.5
  rows = offsets[:, :1] + tf.range(height)
  columns = tf.range(width)
  columns = offsets[:, 1:] + tf.where(flipped, width - 1 - columns, columns)
  sides = [padding, padding]
  x = tf.pad(x, [[0, 0], sides, sides, [0, 0]], PADS[pad])
  x = tf.gather(x, rows, axis=1, batch_dims=1)
  return tf.gather(x, columns, axis=2, batch_dims=1)
