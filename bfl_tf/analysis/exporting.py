"""Export of a finished run's model as a TensorFlow SavedModel."""

from __future__ import annotations

import os
import pathlib
import tempfile

import numpy as np

from bfl_tf import training
from bfl_tf.analysis import model
from bfl_tf.startup import tf

_NAME = 'saved_model'


def export(
  trained: model.Trained,
  folder: str | os.PathLike,
  num_samples: int | None = None,
) -> pathlib.Path:
  """Writes a SavedModel that predicts from raw examples.

  It uses the random seed of `Trained.predict`. The same rows in the same order
  therefore give the same predictions. A posterior over all weights is exported
  at its mean.

  Args:
    folder: New or empty folder, which is written atomically.
    num_samples: Number of Monte Carlo samples; by default that of `predict`.

  Raises:
    ValueError: The folder is not empty, `num_samples` is below 1, or it is
      above 1 for a posterior over all weights, or only personal models exist.
  """
  trained.check_usable()
  count, path = trained.num_samples(num_samples), pathlib.Path(folder)
  if path.exists() and (not path.is_dir() or any(path.iterdir())):
    raise ValueError(f'{path} exists: choose a new folder.')
  if trained.inference.scope == 'all':
    if num_samples is not None and num_samples > 1:
      raise ValueError(
        'a posterior over all weights is exported at its mean: remove '
        '--num_mc_samples.'
      )
    count = 1
  path.parent.mkdir(parents=True, exist_ok=True)
  with tempfile.TemporaryDirectory(prefix='.', dir=path.parent) as scratch:
    module, made = _Module(trained, count), pathlib.Path(scratch) / 'made'
    signatures = {'serving_default': module.predict}
    tf.saved_model.save(module, str(made / _NAME), signatures=signatures)
    os.replace(made, path)
  return path / _NAME


class _Module(tf.Module):
  """Prediction as one graph, with a fixed seed."""

  def __init__(self, trained, num_samples):
    super().__init__()
    predictor = trained.predictor(training.strategies(1)[0])
    predictor.load(trained.weights)
    # TensorFlow saves only the attributes of a module.
    self._model = predictor.model
    inputs, classes = trained.task.inputs, tf.constant(trained.task.classes)
    is_numeric = trained.task.is_numeric
    seed = tf.constant(trained.draws())

    def predict(x):
      predictive = predictor.batches(x, seed, num_samples)
      uncertainty = {
        'aleatoric_uncertainty': predictive.aleatoric,
        'epistemic_uncertainty': predictive.epistemic,
      }
      if is_numeric:
        unit = predictor.likelihood.label_unit
        scale = tf.sqrt(predictive.aleatoric + predictive.epistemic)
        if unit != 1:
          uncertainty = {
            name: tf.cast(variance, tf.float64) * unit**2
            for name, variance in uncertainty.items()
          }
        mean = predictive.mean[:, 0] * unit
        return {'mean': mean, 'scale': scale * unit, **uncertainty}
      p = tf.cast(predictive.mean, tf.float64)
      entropy = -tf.reduce_sum(tf.math.xlogy(p, p), -1)
      largest = np.log(trained.task.num_classes)
      return {
        'class': tf.gather(classes, tf.argmax(p, -1)),
        'probs': predictive.mean,
        'normalized_entropy': tf.clip_by_value(entropy / largest, 0.0, 1.0),
        **uncertainty,
      }

    spec = tf.TensorSpec([None, *inputs.shape], inputs.dtype, name='x')
    self.predict = tf.function(predict, input_signature=[spec])
