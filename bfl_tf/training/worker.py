"""A device: its own model, its own copy of the data, its compiled functions."""

from collections.abc import Callable

import numpy as np
import tensorflow as tf
import tf_keras

from bfl_tf import models, seeds
from bfl_tf import weights as weights_lib
from bfl_tf.datasets import preprocessing
from bfl_tf.training import jobs, local, prediction, specs


class Worker:
  """A device with its own model, to be trained and asked.

  One thread at a time may use a worker.

  Attributes:
    training: its `LocalTraining`.
    device: its name.
    layout: the model's `weights.Layout`.
  """

  def __init__(
    self,
    strategy: tf.distribute.Strategy,
    build_model: Callable,
    data: jobs.Data,
    settings: jobs.Settings,
  ):
    self._strategy = strategy
    self.device = strategy.extended.worker_devices[0]
    self._mean, self._std = data.mean, data.std
    with strategy.scope():
      self._model = build_model()
      self.training = local.LocalTraining(strategy, self._model, data, settings)
    with tf.device(self.device):
      self._x, self._y = tf.constant(data.x), tf.constant(data.y)
    self._source = data.x
    self.layout = self.training.layout
    self._train: tf.types.experimental.PolymorphicFunction | None = None
    self._measure: tf.types.experimental.PolymorphicFunction | None = None
    self._predict = tf.function(
      self._predict_batches,
      input_signature=[
        tf.TensorSpec([None, *data.x.shape[1:]], self._x.dtype),
        tf.TensorSpec([2], tf.int32),
        tf.TensorSpec([], tf.int32),
        tf.TensorSpec([], tf.int32),
      ],
    )

  @property
  def num_traces(self) -> int:
    """How often local training has been traced: at most once."""
    return self._train.experimental_get_tracing_count() if self._train else 0

  def examples(self, indices) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns normalised examples and labels, resident on the device."""
    with tf.device(self.device):
      x = preprocessing.normalize(
        tf.gather(self._x, indices), self._mean, self._std
      )
      return x, tf.gather(self._y, indices)

  def train(
    self,
    job: jobs.Job,
    x: np.ndarray | None = None,
    y: np.ndarray | None = None,
  ) -> jobs.Result:
    """Trains on one client's examples, from the broadcast weights.

    Args:
      job: what to train from and on.
      x: examples in place of the data's own from now on, of the same shape and
        type; the array of the last call is not copied again.
      y: labels, for this call.

    Raises:
      ValueError: the job, or `x` or `y`, is not like this worker's first.
    """
    if self._train is None:
      signature = self.training.signature(self._x, self._y, job)
      self._train = tf.function(self.training, input_signature=signature)
    # A call that TensorFlow cannot bind leaves its lock taken: the worker's
    # next job would wait for ever.
    *arrays, like = self._train.input_signature
    for name, given, spec in zip('xy', (x, y), arrays):
      difference = given is not None and specs.mismatch(given, spec)
      if difference:
        raise ValueError(f'{name} {difference}.')
    jobs.check(job, like)
    with tf.device(self.device):
      if x is not None and x is not self._source:
        self._x, self._source = tf.constant(x), x
      labels = self._y if y is None else tf.constant(y)
      return _numpy(self._train(self._x, labels, job))

  def load(self, model: weights_lib.Weights) -> None:
    """Writes weights into the device's model."""
    with tf.device(self.device):
      weights_lib.write(self.training.variables, model)

  def predict(
    self, x: np.ndarray, seed: np.ndarray, first: int, num_samples: int
  ) -> prediction.Predictive:
    """Predicts under the loaded weights, in batches; traced once.

    Args:
      x: `[num_examples, ...]` raw examples.
      seed: `[2]` int32.
      first: number of the first example, which names the draws of its batch.
      num_samples: passes of a stochastic model.
    """
    with tf.device(self.device):
      return _numpy(self._predict(x, seed, first, num_samples))

  def batch_statistics(self, x: np.ndarray, seed: np.ndarray) -> np.ndarray:
    """What batch normalization measures on a batch, under the loaded weights.

    Overwrites the buffers of the device's model.

    Args:
      x: `[batch, ...]` raw examples.
      seed: `[2]` int32.

    Returns:
      `[num_buffers]`, as the moving statistics are laid out.
    """
    if self._measure is None:
      signature = self._predict.input_signature[:2]
      self._measure = tf.function(self._measure_batch, signature)
    with tf.device(self.device):
      return self._measure(x, seed).numpy()

  def _measure_batch(self, x, seed):
    """From statistics of 0 a step leaves (1 - momentum) times the batch's."""
    share = {
      id(variable): 1.0 - layer.momentum
      for layer in self._model.submodules
      if isinstance(layer, tf_keras.layers.BatchNormalization)
      for variable in (layer.moving_mean, layer.moving_variance)
    }
    # What else is not trained, a frozen kernel say, is as it was.
    buffers = self.training.variables.buffers
    for variable in buffers:
      if id(variable) in share:
        variable.assign(tf.zeros_like(variable))
    inputs = preprocessing.normalize(x, self._mean, self._std)
    with models.scope(seed):
      self._model(inputs, training=True)
    return weights_lib.flatten([v / share.get(id(v), 1.0) for v in buffers])

  def forward(self, x: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """One pass, in a graph too: probabilities `[batch, num_classes]`."""
    inputs = preprocessing.normalize(x, self._mean, self._std)
    with models.scope(seed):
      return tf.nn.softmax(self._model(inputs, training=False))

  def _predict_batches(self, x, seed, first, num_samples):
    size, count = prediction.BATCH_SIZE, tf.shape(x)[0]
    rows = {'size': -(-count // size), 'infer_shape': False}
    probs = tf.TensorArray(
      tf.float32, element_shape=[None, self._model.output_shape[-1]], **rows
    )
    aleatoric = tf.TensorArray(tf.float32, element_shape=[None], **rows)
    epistemic = tf.TensorArray(tf.float32, element_shape=[None], **rows)
    stream = seeds.Stream(seed)
    for start in tf.range(0, count, size):
      draw = stream('batch', first + start)
      batch = self._predict_batch(x[start : start + size], draw, num_samples)
      place = start // size
      probs = probs.write(place, batch.probs)
      aleatoric = aleatoric.write(place, batch.aleatoric)
      epistemic = epistemic.write(place, batch.epistemic)
    return prediction.Predictive(
      probs.concat(), aleatoric.concat(), epistemic.concat()
    )

  def _predict_batch(self, x, seed, num_samples):
    welford = prediction.Welford.zeros(
      [tf.shape(x)[0], self._model.output_shape[-1]]
    )
    stream = seeds.Stream(seed)
    for sample in tf.range(num_samples):
      welford = welford.add(self.forward(x, stream('sample', sample)))
    return welford.predictive()


def _numpy(structure):
  return tf.nest.map_structure(lambda t: t.numpy(), structure)
