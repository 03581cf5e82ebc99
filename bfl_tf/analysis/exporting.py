"""Export of a finished run's model as a TensorFlow SavedModel."""

from __future__ import annotations

import os
import pathlib
import tempfile

import numpy as np

from bfl_tf import training
from bfl_tf.analysis import model
from bfl_tf.federation import prediction
from bfl_tf.startup import tf


def export(
  trained: model.Trained,
  folder: str | os.PathLike,
  num_samples: int | None = None,
) -> pathlib.Path:
  """Writes a SavedModel that predicts from raw examples.

  It uses the random seed of `Trained.predict`. The same rows in the same order
  therefore give the same predictions. A posterior over all weights is exported
  at its mean. The default number of Monte Carlo samples is that of `predict`.
  """
  trained.check_usable()
  runs = trained.runs if isinstance(trained, model.Ensemble) else [trained]
  at_mean = [run.inference.scope == 'all' for run in runs]
  path = pathlib.Path(folder)
  if path.exists() and (not path.is_dir() or any(path.iterdir())):
    raise ValueError(f'{path} exists: choose a new folder.')
  if any(at_mean) and (num_samples or 1) > 1:
    raise ValueError(
      'a posterior over all weights is exported at its mean: remove '
      '--num_mc_samples.'
    )
  counts = [
    1 if is_mean else run.num_samples(num_samples)
    for run, is_mean in zip(runs, at_mean)
  ]
  path.parent.mkdir(parents=True, exist_ok=True)
  with tempfile.TemporaryDirectory(prefix='.', dir=path.parent) as scratch:
    module, draft = _Module(runs, counts), pathlib.Path(scratch) / 'draft'
    signatures = {'serving_default': module.predict}
    saved = str(draft / 'saved_model')
    tf.saved_model.save(module, saved, signatures=signatures)
    os.replace(draft, path)
  return path / 'saved_model'


class _Module(tf.Module):
  """Prediction as one graph, with a fixed seed."""

  def __init__(self, runs, counts):
    super().__init__()
    trained = runs[0]
    predictors = [run.predictor(training.strategies(1)[0]) for run in runs]
    for predictor, run in zip(predictors, runs):
      predictor.load(prediction.scaled(run.weights, run.factor))
    # TensorFlow saves only the attributes of a module.
    self._models = [predictor.model for predictor in predictors]
    inputs, classes = trained.task.inputs, tf.constant(trained.task.classes)
    is_numeric = trained.task.is_numeric
    seeds = [tf.constant(run.draws()) for run in runs]

    def predict(x):
      predictions = [
        predictor.batches(x, seed, count)
        for predictor, seed, count in zip(predictors, seeds, counts)
      ]
      predictive = _mixture(predictions)
      uncertainty = {
        'aleatoric_uncertainty': predictive.aleatoric,
        'epistemic_uncertainty': predictive.epistemic,
      }
      if is_numeric:
        unit = trained.likelihood.label_unit
        scale = tf.sqrt(predictive.aleatoric + predictive.epistemic)
        if unit != 1:
          for name, variance in uncertainty.items():
            uncertainty[name] = tf.cast(variance, tf.float64) * unit**2
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


def _mixture(predictions):
  """Returns the mixture of predictions, as `training.Mixtures` in a graph."""
  mean, *others = (tf.reduce_mean(values, 0) for values in zip(*predictions))
  squares = [tf.square(each.mean - mean) for each in predictions]
  others[1] += tf.reduce_sum(tf.reduce_mean(squares, 0), -1)
  return training.Predictive(mean, *others)
