"""A device with model and data, for training and prediction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
import weakref

import numpy as np

from bfl_tf.data import preprocessing
from bfl_tf.startup import tf, tf_keras
from bfl_tf.training import local, predictor, tasks

# Examples on a device, by the identity of their array. A worker keeps both.
_copies: weakref.WeakValueDictionary[Any, tf.Tensor] = (
  weakref.WeakValueDictionary()
)


class Worker(predictor.Predictor):
  """A device with its own model and data, for training and prediction.

  Only one thread at a time may use a worker.

  Attributes:
    build_model: Function that builds the network; takes an optional `seed`.
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
    super().__init__(
      strategy, build_model, inputs, config.inference, config.likelihood
    )
    self.build_model, self.config = build_model, config
    self._strategy, self._data = strategy, data
    self._others: dict[Any, Worker] = {}
    with strategy.scope():
      self.training = local.LocalTraining(strategy, self.model, data, config)
    with tf.device(self.device):
      self._x, self._y = self._copied(data.x), tf.constant(data.y)
    self._source, self.labels = data.x, data.y
    self._train: Callable[..., tasks.Result] | None = None
    # The last broadcast, and its copy on the device.
    self._start: tuple[Any, Any] = None, None

  def _copied(self, x):
    """Returns a copy on the device, which workers of the same data share."""
    key = id(x), self.device
    copy = _copies.get(key)
    if copy is None:
      copy = _copies[key] = tf.constant(x)
    return copy

  def other(
    self,
    config: tasks.TrainingConfig,
    x: np.ndarray | None = None,
    y: np.ndarray | None = None,
  ) -> Worker:
    """Returns a worker of the same device and network for another training.

    Workers are cached by config and shape of the examples. A cached worker may
    contain other examples, so pass yours to `train`.

    Args:
      x: Examples of the same type that replace the data's.
      y: Labels that replace the data's.
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
    """Returns normalized examples and labels on the device."""
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
      x: Examples of the same shape and type that replace the data's from now
        on. The array of the last call is not copied again.
      y: Labels for this call only.

    Raises:
      TypeError: `task`, `x` or `y` has other shapes or types than in the first
        call.
    """
    with tf.device(self.device):
      if self._train is None and self.config.is_eager:
        self._train = self.training
      if self._train is None:
        signature = self.training.signature(self._x, self._y, task)
        # After invalid arguments, a `tf.function` stays locked and the next
        # call would block forever. A concrete function does not.
        traced = tf.function(self.training, signature)
        self._train = traced.get_concrete_function()
      if task.start is not self._start[0]:
        copied = tf.nest.map_structure(tf.constant, task.start)
        self._start = task.start, copied
      task = task._replace(start=self._start[1])
      inputs = self._x if x is None or x is self._source else tf.constant(x)
      labels = self._y if y is None else tf.constant(y)
      result = predictor.as_numpy(self._train(inputs, labels, task))
    if x is not None:
      self._x, self._source = inputs, x
    return result
