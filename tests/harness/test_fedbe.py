"""Tests of FedBE's figures that need models and clients."""

import numpy as np
import pytest

import bfl_tf
from bfl_tf import federation
from experiments.papers.fedbe import features, grids, simplex


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  path = tmp_path_factory.mktemp('fedbe') / 'run'
  config = grids.MAIN['FedAvg', 'step ConvNet'].config('smoke', 0)
  bfl_tf.runs.Run(config, path, False, draw_plots=False).execute()
  return path


def test_classes_of_other_images_are_the_predictions_of_the_run(run):
  vectors, classes = features.of_cifar100(run)
  point = bfl_tf.load(run).weights.point
  logits = vectors @ point[-90:-10].reshape(8, 10) + point[-10:]
  np.testing.assert_array_equal(classes, logits.argmax(-1))
  # A run on digits uses its training images in place of CIFAR-100.
  assert len(vectors) > len(features.of_test_set(run)[0])


def test_models_on_the_simplex_are_convex_combinations():
  config = grids.SWISS_ROLL.config('smoke', 0)
  experiment = federation.Experiment.build(config)
  coefficients, accuracy = simplex.models(experiment, num_models=5)
  assert coefficients.shape == (5, 3) and accuracy.shape == (5,)
  np.testing.assert_allclose(coefficients.sum(-1), 1, rtol=1e-6)
  assert (coefficients >= 0).all()
  again = simplex.models(experiment, num_models=5)
  for first, second in zip((coefficients, accuracy), again):
    np.testing.assert_array_equal(first, second)
