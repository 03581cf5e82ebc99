"""Tests of the factor on the standard deviations of a posterior."""

import numpy as np
import toys

import bfl_tf
from bfl_tf import runs
from bfl_tf.analysis import loading
from bfl_tf.federation import evaluation, prediction

_LAPLACE = {
  'dataset': 'test_posterior_factor:noisy', 'model': 'mlp', 'num_clients': 2,
  'num_rounds': 2, 'client_optimizer': 'laplace', 'pooling': 'llp',
  'variant': 'deterministic', 'final_num_mc_samples': 5,
}  # fmt: skip


def noisy():
  x, y, *rest = toys.halves()
  return x, np.where(np.arange(len(y)) % 4, y, 0), *rest


def finished(path, **changes):
  config = bfl_tf.Config.of({**_LAPLACE, **changes})
  run = runs.Run(config, path, False, toys.BUILT, draw_plots=False)
  return run.execute(), loading.load_run(path)


def test_the_factor_has_the_lowest_nll_of_validation_examples(tmp_path):
  summary, run = finished(tmp_path / 'run', validation_split=0.3)
  factor, held = summary['posterior_factor'], run.dataset.validation

  def nll(value):
    run.trained.factor = value
    probs = run.trained.predict(held.x, 10 if value else 1).probs
    return -np.mean(np.log(probs[np.arange(len(held.y)), held.y]))

  assert run.trained.factor == factor < 1
  assert run.trained.num_samples() == (5 if factor else 1)
  saved = np.load(tmp_path / 'run' / 'predictions.npz')['probs']
  np.testing.assert_array_equal(run.trained.predict(run.test.x).probs, saved)
  assert nll(factor) < nll(1.0)
  # A report replaces the weights by those of a site, and predicts like it.
  run.trained.factor = 0.3
  assert run.trained.replace(run.trained.weights).factor == 0.3


def test_half_of_the_calibration_examples_sets_thresholds(tmp_path):
  summary, run = finished(tmp_path / 'run', calibration_fraction=0.4)
  assert summary['posterior_factor'] in prediction.FACTORS
  fits, thresholds = evaluation.halves(run.dataset)
  whole = run.dataset.calibration.x
  np.testing.assert_array_equal(run.calibration.x, thresholds.x)
  assert len(fits.y) + len(thresholds.y) == len(whole)
  both = np.concatenate([fits.x, thresholds.x])
  assert {*map(bytes, both)} == {*map(bytes, whole)}


def test_without_held_out_examples_the_run_is_as_before(tmp_path):
  summary, run = finished(tmp_path / 'run')
  assert 'posterior_factor' not in summary
  assert run.trained.factor is None
  # Laplace predicts with the mean by default.
  assert run.trained.num_samples() == 1
  _, given = finished(tmp_path / 'given', posterior_factor=0.3)
  assert (given.trained.factor, given.trained.num_samples()) == (0.3, 5)


def test_the_factor_applies_to_the_global_model_of_a_client(tmp_path):
  zero = {'predict_with': 'samples', 'posterior_factor': 0.0}
  losses = [
    finished(tmp_path / f'{number}', **more, personal_scores=True)[0]['final']
    for number, more in enumerate((zero, {'predict_with': 'mean'}))
  ]
  assert losses[0]['personal_nll'] == losses[1]['personal_nll']
