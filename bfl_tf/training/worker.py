"""A predictor that trains, with its own copy of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bfl_tf.data import preprocessing
from bfl_tf.startup import tf, tf_keras
from bfl_tf.training import local, predictor, tasks


class Worker(predictor.Predictor):
  """A device with its own model, to be trained and asked.

  One thread at a time may use a worker.

  Attributes:
    build_model: Function from a `seed` to the network with initial weights.
    config: Configuration of the training.
    training: The compiled training, a `LocalTraining`.
    labels: Labels of all examples.
  """

  def __init__(
    self,
    strategy: tf.distribute.Strategy,
    build_model: Callable[..., tf_keras.Model],
    data: tasks.Data,
    config: tasks.TrainingConfig,
  ):
    shape, dtype = data.x.shape[1:], data.x.dtype
    inputs = predictor.Inputs(shape, dtype, data.mean, data.std)
    super().__init__(strategy, build_model, inputs, config.posterior_scope)
    self.build_model, self.config = build_model, config
    self._strategy, self._data = strategy, data
    self._others: dict[Any, Worker] = {}
    with strategy.scope():
      self.training = local.LocalTraining(strategy, self.model, data, config)
    with tf.device(self.device):
      self._x, self._y = tf.constant(data.x), tf.constant(data.y)
    self._source, self.labels = data.x, data.y
    self._train: Callable[..., tasks.Result] | None = None

  def other(
    self,
    config: tasks.TrainingConfig,
    x: np.ndarray | None = None,
    y: np.ndarray | None = None,
  ) -> Worker:
    """Returns a worker of the same device and network for another training.

    It is made once for a config and examples of one shape, and may hold those
    of whoever asked first: hand it yours, by `train`.

    Args:
      config: Configuration of the training.
      x: Examples in place of the data's own, of the same type.
      y: Labels in place of the data's own.
    """
    data = self._data
    data = data._replace(
      x=data.x if x is None else x, y=data.y if y is None else y
    )
    key = config, data.x.shape, data.y.shape
    if key not in self._others:
      self._others[key] = Worker(self._strategy, self.build_model, data, config)
    return self._others[key]

  def examples(self, indices) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns normalised examples and labels, resident on the device."""
    with tf.device(self.device):
      x = preprocessing.normalize(
        tf.gather(self._x, indices), self.inputs.mean, self.inputs.std
      )
      return x, tf.gather(self._y, indices)

  def train(
    self,
    task: tasks.ClientTask,
    x: np.ndarray | None = None,
    y: np.ndarray | None = None,
  ) -> tasks.Result:
    """Trains on one client's examples, from the broadcast weights.

    Args:
      task: Start and examples of the training.
      x: examples in place of the data's own from now on, of the same shape and
        type; the array of the last call is not copied again.
      y: labels, for this call.

    Raises:
      TypeError: the task, or `x` or `y`, is not like this worker's first.
    """
    with tf.device(self.device):
      if self._train is None:
        signature = self.training.signature(self._x, self._y, task)
        # Traced once. A `tf.function` that cannot bind its arguments leaves its
        # lock taken, and the next task would wait for ever.
        traced = tf.function(self.training, signature)
        self._train = traced.get_concrete_function()
      inputs = self._x if x is None or x is self._source else tf.constant(x)
      labels = self._y if y is None else tf.constant(y)
      result = predictor.as_numpy(self._train(inputs, labels, task))
    if x is not None:
      self._x, self._source = inputs, x
    return result
