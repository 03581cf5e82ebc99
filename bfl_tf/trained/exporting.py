"""A finished run's model for a process that knows nothing of this package."""

import os
import pathlib
import tempfile

import numpy as np
import tensorflow as tf
import tf_keras

from bfl_tf import training
from bfl_tf.trained import model as trained_lib

SAVED_MODEL, KERAS = 'saved_model', 'model.keras'


def export(
  trained: trained_lib.Trained,
  folder: str | os.PathLike,
  num_samples: int | None = None,
) -> list[pathlib.Path]:
  """Writes what predicts from raw examples.

  Always a SavedModel with the draws of `Trained.predict` in it: of the same
  rows in the same order it says the same. Of a deterministic network of ours a
  Keras model from raw examples to probabilities too, which `tf_keras` loads.

  Args:
    trained: the run.
    folder: a new one; it appears whole.
    num_samples: passes of a stochastic model; by default those of `predict`.

  Returns:
    What was written.

  Raises:
    ValueError: the folder holds something, no samples are wanted, or more than
      one of a posterior over all weights.
  """
  count, path = trained.num_samples(num_samples), pathlib.Path(folder)
  if path.exists() and (not path.is_dir() or any(path.iterdir())):
    raise ValueError(f'{path} is there already: name a new folder.')
  if trained.averages(num_samples):
    raise ValueError(
      'a posterior over all weights is exported at its mean: leave '
      '--num_mc_samples out.'
    )
  path.parent.mkdir(parents=True, exist_ok=True)
  with tempfile.TemporaryDirectory(prefix='.', dir=path.parent) as scratch:
    names = _write(trained, count, pathlib.Path(scratch))
    made = pathlib.Path(scratch) / 'made'
    os.replace(made, path)
  return [path / name for name in names]


def _write(trained, count, scratch) -> list[str]:
  """Writes into a folder `made`; returns the names there."""
  module, made = _Module(trained, count), scratch / 'made'
  tf.saved_model.save(
    module,
    str(made / SAVED_MODEL),
    signatures={'serving_default': module.predict},
  )
  if not is_portable(trained):
    return [SAVED_MODEL]
  keras_model(trained).save(made / KERAS)
  return [SAVED_MODEL, KERAS]


def is_portable(trained: trained_lib.Trained) -> bool:
  """Whether it is a network of ours whose layers `tf_keras` knows by itself."""
  layers = [
    each
    for each in trained.model.submodules
    if isinstance(each, tf_keras.layers.Layer)
  ]
  homes = {type(layer).__module__.partition('.')[0] for layer in layers}
  return ':' not in trained.config.model and homes <= {'keras', 'tf_keras'}


def keras_model(trained: trained_lib.Trained) -> tf_keras.Model:
  """Returns the model with what goes before and after it as Keras layers."""
  inputs = trained.task.inputs
  raw = tf_keras.Input(inputs.shape, dtype=inputs.dtype.name)
  # In two steps: Keras holds standard deviations above 1e-7 in one.
  centred = tf_keras.layers.Normalization(
    mean=inputs.mean, variance=np.ones_like(inputs.mean)
  )(raw)
  scaled = tf_keras.layers.Rescaling((1 / inputs.std).tolist())(centred)
  probs = tf_keras.layers.Softmax()(trained.model(scaled))
  return tf_keras.Model(raw, probs, name='bfl_tf')


class _Module(tf.Module):
  """Predicts in one graph, with its draws in it."""

  def __init__(self, trained, num_samples):
    super().__init__()
    predictor = trained.predictor(training.strategies(1)[0])
    predictor.load(trained.weights)
    # What is not tracked is not saved.
    self._model = predictor.model
    inputs, classes = trained.task.inputs, tf.constant(trained.task.classes)
    seed = tf.constant(trained.draws())

    def predict(x):
      said = predictor.batches(x, seed, tf.constant(0), num_samples)
      p = tf.cast(said.probs, tf.float64)
      entropy = -tf.reduce_sum(tf.math.xlogy(p, p), -1)
      largest = np.log(trained.task.num_classes)
      return {
        'class': tf.gather(classes, tf.argmax(p, -1)),
        'probs': said.probs,
        'normalized_entropy': tf.clip_by_value(entropy / largest, 0.0, 1.0),
        'aleatoric_uncertainty': said.aleatoric,
        'epistemic_uncertainty': said.epistemic,
      }

    spec = tf.TensorSpec([None, *inputs.shape], inputs.dtype, name='x')
    self.predict = tf.function(predict, input_signature=[spec])
