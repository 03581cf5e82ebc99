"""The CIFAR-10 network of pfl-research's benchmark, with 1.6 million weights.

References:
  F. Granqvist et al. pfl-research: Simulation framework for accelerating
  research in private federated learning. NeurIPS 2024, datasets and benchmarks.
  `simple_cnn` of its public code.
"""

from __future__ import annotations

from bfl_tf import models
from bfl_tf.models import layers
from bfl_tf.startup import tf_keras


def cnn(input_shape, num_classes, kernel_initializer, seed):
  """Two convolutions and one hidden layer, with dropout in training only."""
  deterministic = models.VARIANTS['deterministic']()
  blocks = models.Blocks(deterministic, kernel_initializer, seed)
  relu = tf_keras.layers.ReLU
  inputs = x = tf_keras.Input(input_shape)
  for filters in (32, 64):
    x = relu()(blocks.conv(filters, 3, x, padding='valid'))
  x = layers.Dropout(0.25)(tf_keras.layers.MaxPooling2D()(x))
  x = relu()(blocks.dense(128, tf_keras.layers.Flatten()(x)))
  logits = blocks.dense(num_classes, layers.Dropout(0.5)(x))
  return tf_keras.Model(inputs, logits)
