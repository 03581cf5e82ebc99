"""Tests of the uncertainty evaluation and its scores."""

import fake
import numpy as np
import pytest

from bfl_tf import analysis, data, metrics, runs
from bfl_tf.analysis import loading, uncertainty
from bfl_tf.analysis.model import NumericPrediction
from bfl_tf.config.config import Config
from bfl_tf.data import corruptions


def test_numeric_scores_equal_those_computed_by_hand():
  variance = np.array([4.0, 1.0, 9.0, 16.0, 25.0])
  predicted = NumericPrediction(
    np.zeros(5), np.sqrt(variance), np.zeros(5), variance
  )
  y = np.array([2.0, -1.0, 3.0, -4.0, 10.0])
  total, _, epistemic = uncertainty.selection(predicted, y)
  assert total['rmse'] == pytest.approx(26**0.5)
  # The error without the least certain example.
  assert total['rmse_at_80_coverage'] == pytest.approx(7.5**0.5)
  assert total['rank_correlation'] == pytest.approx(1)
  assert epistemic['rank_correlation'] == pytest.approx(1)
  row = uncertainty.calibration(predicted, y, temperature=2.0)
  doubled = predicted.evaluation(y)._replace(epistemic=4 * variance)
  scores = metrics.summarize(doubled)
  assert row.pop('scale_factor') == 2
  assert row == pytest.approx({name: scores[name] for name in row})


@pytest.mark.parametrize(
  'changes, set_apart, expected',
  [
    ({}, False, None),
    ({'calibration_fraction': 0.25}, False, ('the calibration examples', 36)),
    # Test examples that are set apart take precedence.
    ({'validation_split': 0.5}, True, ('the held-out test examples', 9)),
    ({'validation_split': 0.5}, False, ('the validation examples', 71)),
  ],
)
def test_the_temperature_is_fitted_on_held_out_examples(
  changes, set_apart, expected
):
  dataset = data.load('wine', **changes)
  held = dataset.test.take(slice(0, 9)) if set_apart else dataset.calibration
  run = loading.LoadedRun(None, dataset, held, dataset.test, 'lac')
  found = uncertainty.temperature_data(run)
  assert (found and (found[0], len(found[1].y))) == expected


def test_corrupted_images_are_scored_with_the_model_of_the_run(tmp_path):
  config = Config(
    dataset='digits', model='logistic', variant='deterministic',
    num_workers=1, num_clients=2,
    num_rounds=1, client_learning_rate=0.01,
  )  # fmt: skip
  fake.execute(tmp_path, config)
  model = analysis.load(tmp_path)
  test = data.load('digits').test
  test = test.take(uncertainty.subset(len(test.y), 20))
  rows = list(uncertainty.corrupted(model, test, None, seed=0))
  assert len(rows) == 1 + 5 * len(corruptions.KINDS)
  clean, *others = rows
  assert (clean['kind'], clean['strength']) == ('none', 0)
  probs = model.predict(test.x).probs
  assert clean['accuracy'] == metrics.accuracy(probs, test.y)
  x = corruptions.corrupt(test.x, 'noise', 3, 0)
  (row,) = [r for r in others if (r['kind'], r['strength']) == ('noise', 3)]
  assert row['nll'] == metrics.negative_log_likelihood(
    model.predict(x).probs, test.y
  )


def test_a_run_stores_the_temperature_of_its_calibration_examples(tmp_path):
  config = Config(
    dataset='diabetes', likelihood='gaussian', model='logistic',
    num_workers=1, num_clients=2,
    num_rounds=3, local_epochs=5, variant='deterministic',
    calibration_fraction=0.3,
  )  # fmt: skip
  runs.Run(config, tmp_path, False, draw_plots=False).execute()
  run = loading.load_run(tmp_path)
  trained, x = run.trained, run.test.x
  fitted = uncertainty.fitted_temperature(trained, run.calibration)
  assert trained.temperature == pytest.approx(fitted, rel=1e-6)
  # The NLL of the calibration examples is minimal with this temperature.
  raw, y = trained.predict(run.calibration.x), run.calibration.y
  losses = []
  for factor in (1.0, 0.5, 2.0):
    trained.temperature = fitted * factor
    row = uncertainty.calibration(trained.calibrated(raw), y)
    losses.append(row['nll'])
  assert min(losses) >= losses[0] - 1e-9
  trained.temperature = None
  with pytest.raises(ValueError, match='--calibration_fraction'):
    trained.calibrated(trained.predict(x))
