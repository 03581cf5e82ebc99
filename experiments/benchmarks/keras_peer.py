"""Keras' `fit` for each client, for the benchmark --case=peers.

Network and objective are the same as ours. TensorFlow uses its own threads and
graph rewrites.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_probability import distributions as tfd
import tf_keras

from bfl_tf import models
from bfl_tf.config.config import Config
from bfl_tf.data import preprocessing


def begin(config: Config) -> tuple[str, Callable[[], Any]]:
  """Returns a label and a function that runs one round."""
  tf.config.threading.set_intra_op_parallelism_threads(config.num_workers)
  for gpu in tf.config.list_physical_devices('GPU'):
    tf.config.experimental.set_memory_growth(gpu, True)
  with np.load(config.dataset) as arrays:
    x, y = arrays['x_train'], arrays['y_train']
  size = len(x) // config.num_clients
  model = build(config, x.shape[1:], size)
  start = model.get_weights()
  # The data are prepared before the time is measured.
  clients = [
    examples(
      x[i : i + size], y[i : i + size], config.batch_size, config.augment
    )
    for i in range(0, len(x), size)
  ]

  def execute():
    trained = []
    for own in clients:
      model.set_weights(start)
      model.fit(**own, verbose=0)
      trained.append(model.get_weights())
    return [np.mean(each, axis=0) for each in zip(*trained)]

  return f'Keras fit (tf_keras {tf_keras.__version__})', execute


def initial(settings: Any, x: np.ndarray) -> list[np.ndarray]:
  """Returns initial weights, for a Flower app."""
  return build(settings, x.shape[1:], len(x)).get_weights()


def fit(
  settings: Any, x: np.ndarray, y: np.ndarray, start: list[np.ndarray]
) -> list[np.ndarray]:
  """Returns weights that are trained by a new model, for a Flower app."""
  model = build(settings, x.shape[1:], len(x))
  model.set_weights(start)
  own = examples(x, y, settings.batch_size, settings.augment)
  model.fit(**own, verbose=0)
  return model.get_weights()


def build(
  config: Any, input_shape: tuple[int, ...], num_examples: int
) -> tf_keras.Model:
  """Returns a compiled network; `config` has the attributes of a `Config`."""
  model = models.build(
    config.model,
    variant=config.variant,
    input_shape=input_shape,
    num_classes=10,
  )
  if config.variant == 'flipout':
    model.add_loss(lambda: _divergence(model) / num_examples)
  loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  make = tf_keras.optimizers.get(config.client_optimizer)
  make.learning_rate = config.client_learning_rate
  model.compile(make, loss)
  return model


def examples(
  x: np.ndarray, y: np.ndarray, batch_size: int, augment: bool
) -> dict[str, Any]:
  """Returns arguments of `fit`; `augment` crops and flips the images."""
  if not augment:
    return {'x': x.astype('float32') / 255, 'y': y, 'batch_size': batch_size}

  def augmented(images, labels):
    seed = tf.random.uniform([2], maxval=tf.int32.max, dtype=tf.int32)
    images = preprocessing.augment(images, seed)
    return tf.cast(images, tf.float32) / 255, labels

  data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x))
  data = data.batch(batch_size).map(augmented, tf.data.AUTOTUNE)
  return {'x': data.prefetch(tf.data.AUTOTUNE)}


def _divergence(model):
  posteriors = [
    posterior
    for layer in model.layers
    for name in ('kernel_posterior', 'bias_posterior')
    if (posterior := getattr(layer, name, None)) is not None
  ]
  prior = tfd.Normal(0.0, 10.0)
  return sum(
    tf.reduce_sum(tfd.kl_divergence(q.distribution, prior)) for q in posteriors
  )
