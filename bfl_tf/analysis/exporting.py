"""A finished run's model for a process that knows nothing of this package."""

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

  The draws of `Trained.predict` are in it: of the same rows in the same order
  it says the same.

  Args:
    trained: the run.
    folder: a new one; it appears whole.
    num_samples: passes of a stochastic model; by default those of `predict`.

  Returns:
    Where it is.

  Raises:
    ValueError: the folder holds something, no samples are wanted, or more than
      one of a posterior over all weights.
  """
  count, path = trained.num_samples(num_samples), pathlib.Path(folder)
  if path.exists() and (not path.is_dir() or any(path.iterdir())):
    raise ValueError(f'{path} exists: choose a new folder.')
  if trained.averages(num_samples):
    raise ValueError(
      'a posterior over all weights is exported at its mean: remove '
      '--num_mc_samples.'
    )
  path.parent.mkdir(parents=True, exist_ok=True)
  with tempfile.TemporaryDirectory(prefix='.', dir=path.parent) as scratch:
    module, made = _Module(trained, count), pathlib.Path(scratch) / 'made'
    signatures = {'serving_default': module.predict}
    tf.saved_model.save(module, str(made / _NAME), signatures=signatures)
    os.replace(made, path)
  return path / _NAME


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
