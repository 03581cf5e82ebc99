"""A model on a device, with its compiled prediction functions."""

from __future__ import annotations

from collections.abc import Callable
import functools
from typing import Any, NamedTuple

import numpy as np

from bfl_tf import models, seeds, weights
from bfl_tf.data import preprocessing
from bfl_tf.startup import tf, tf_keras
from bfl_tf.training import inference as inference_lib
from bfl_tf.training import likelihoods, prediction, predictive


class Inputs(NamedTuple):
  """Shape and type of raw examples, and their normalization.

  Attributes:
    mean: `[channels]` float32.
    std: `[channels]` float32, standard deviations.
  """

  shape: tuple[int, ...]
  dtype: Any
  mean: np.ndarray
  std: np.ndarray


class Predictor:
  """A device with its own model for predictions, without training data.

  Only one thread at a time may use a predictor.

  Attributes:
    inference: Owner of the posterior, and whether samples of it predict.
  """

  def __init__(
    self,
    strategy: tf.distribute.Strategy,
    build_model: Callable[[], tf_keras.Model],
    inputs: Inputs,
    inference: inference_lib.Inference,
    likelihood: likelihoods.Likelihood,
  ):
    """Builds the model."""
    self.inputs, self.likelihood = inputs, likelihood
    self.inference = inference
    self.device = strategy.extended.worker_devices[0]
    with strategy.scope():
      self.model = build_model()
    self.variables = weights.Variables.of(self.model, inference.scope)
    self.layout = weights.Layout.of(self.model, inference.scope)
    # A number has one predictive mean; classes have one probability each.
    num_outputs = self.model.output_shape[-1]
    self._num_means = 1 if likelihood.is_numeric else num_outputs
    self._measure: tf.types.experimental.PolymorphicFunction | None = None
    self._linearized: tf.types.experimental.PolymorphicFunction | None = None
    scalar = tf.TensorSpec([], tf.int32)
    self._signature = [
      tf.TensorSpec([None, *inputs.shape], inputs.dtype),
      tf.TensorSpec([2], tf.int32),
    ]
    # A loop over samples inside the loop over batches costs a small network a
    # quarter of its speed, also for one sample.
    self._predict_once = tf.function(
      functools.partial(self.batches, num_samples=1), self._signature
    )
    self._predict = tf.function(self.batches, [*self._signature, scalar])

  def load(self, model: weights.Weights) -> None:
    """Writes weights into the device's model."""
    with tf.device(self.device):
      weights.write(self.variables, model)

  def predict(
    self, x: np.ndarray, seed: np.ndarray, num_samples: int
  ) -> predictive.Predictive:
    """Predicts with the loaded weights, in batches.

    Traced once for one sample, and once for any other number.

    Args:
      x: `[num_examples, ...]` raw examples.
    """
    with tf.device(self.device):
      if num_samples == 1:
        return as_numpy(self._predict_once(x, seed))
      return as_numpy(self._predict(x, seed, num_samples))

  def predict_linearized(
    self, x: np.ndarray, change: np.ndarray
  ) -> predictive.Predictive:
    """Predicts with the model linearized at the loaded means.

    The outputs are f(x; m) + J(x) (w - m), by one forward pass with a
    Jacobian-vector product (Immer et al. 2021).

    Args:
      x: `[num_examples, ...]` raw examples.
      change: `[num_trainable]` float32, w - m.
    """
    if self._linearized is None:
      size = self.layout.num_trainable()
      signature = [self._signature[0], tf.TensorSpec([size])]
      self._linearized = tf.function(self._linearized_batches, signature)
    with tf.device(self.device):
      return as_numpy(self._linearized(x, change))

  def _linearized_batches(self, x, change):
    shapes = [variable.shape for variable in self.variables.mean]
    tangents = weights.unflatten(change, shapes)

    def predict(batch):
      inputs = preprocessing.normalize(batch, self.inputs.mean, self.inputs.std)
      rhos, nothing = (
        self.variables.untransformed_scale,
        tf.zeros([2], tf.int32),
      )
      with (
        tf.autodiff.ForwardAccumulator(
          self.variables.mean, tangents
        ) as accumulator,
        models.scope(nothing, rhos, 'none'),
      ):
        outputs = self.model(inputs, training=False)
      moments = self.likelihood.moments(outputs + accumulator.jvp(outputs))
      zeros = predictive.Welford.zeros([tf.shape(batch)[0], self._num_means])
      return zeros.add(moments).predictive()

    return self._in_batches(x, predict)

  def batch_statistics(self, x: np.ndarray, seed: np.ndarray) -> np.ndarray:
    """Returns the statistics of batch normalization on a batch.

    Overwrites the buffers of the device's model.

    Args:
      x: `[batch, ...]` raw examples.

    Returns:
      `[num_buffers]`, in the layout of the moving statistics.
    """
    if self._measure is None:
      self._measure = tf.function(self._measure_batch, self._signature)
    with tf.device(self.device):
      return self._measure(x, seed).numpy()

  def _measure_batch(self, x, seed):
    """Measures a batch: from 0, a step adds (1 - momentum) times its values."""
    share = {
      id(variable): 1.0 - layer.momentum
      for layer in self.model.submodules
      if isinstance(layer, tf_keras.layers.BatchNormalization)
      and layer.trainable
      for variable in (layer.moving_mean, layer.moving_variance)
    }
    # Other variables, e.g., the kernel or statistics of a frozen layer, do not
    # change.
    buffers = self.variables.buffers
    for variable in buffers:
      if id(variable) in share:
        variable.assign(tf.zeros_like(variable))
    inputs = preprocessing.normalize(x, self.inputs.mean, self.inputs.std)
    with models.scope(seed, self.variables.untransformed_scale):
      self.model(inputs, training=True)
    return weights.flatten([v / share.get(id(v), 1.0) for v in buffers])

  def forward(self, x: tf.Tensor, seed: tf.Tensor) -> predictive.Moments:
    """Returns the moments of the labels for one Monte Carlo sample."""
    inputs = preprocessing.normalize(x, self.inputs.mean, self.inputs.std)
    rhos = self.variables.untransformed_scale
    draws = 'once' if self.inference.by_samples else 'none'
    with models.scope(seed, rhos, draws):
      return self.likelihood.moments(self.model(inputs, training=False))

  def batches(
    self, x: tf.Tensor, seed: tf.Tensor, num_samples: int
  ) -> predictive.Predictive:
    """Returns the result of `predict` as tensors, for use in a graph."""
    return self._in_batches(
      x, lambda batch: self._predict_batch(batch, seed, num_samples)
    )

  def _in_batches(self, x, predict):
    """Predicts examples in batches, by a function of a batch."""
    size, count = prediction.BATCH_SIZE, tf.shape(x)[0]
    rows = {'size': -(-count // size), 'infer_shape': False}
    probs = tf.TensorArray(
      tf.float32, element_shape=[None, self._num_means], **rows
    )
    others = [
      tf.TensorArray(tf.float32, element_shape=[None], **rows)
      for _ in predictive.Predictive._fields[1:]
    ]
    for start in tf.range(0, count, size):
      batch = predict(x[start : start + size])
      place = start // size
      probs = probs.write(place, batch.mean)
      others = [a.write(place, v) for a, v in zip(others, batch[1:])]
    return predictive.Predictive(
      probs.concat(), *(array.concat() for array in others)
    )

  def _predict_batch(self, x, seed, num_samples):
    welford = predictive.Welford.zeros([tf.shape(x)[0], self._num_means])
    stream = seeds.Stream(seed)
    if isinstance(num_samples, int) and num_samples == 1:
      return welford.add(self.forward(x, stream('sample', 0))).predictive()
    for sample in tf.range(num_samples):
      welford = welford.add(self.forward(x, stream('sample', sample)))
    return welford.predictive()


def as_numpy(structure: Any) -> Any:
  """Returns a nested structure of tensors as read-only NumPy arrays."""
  # `numpy` would copy the values.
  return tf.nest.map_structure(lambda t: np.asarray(memoryview(t)), structure)
