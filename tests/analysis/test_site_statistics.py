"""Tests of site statistics, whose sums give the scores of all examples."""

import binaries
import fake
import numpy as np
import pytest
import toys

from bfl_tf import metrics
from bfl_tf.analysis import model, prediction_sets, site_statistics
from bfl_tf.config.config import Config

SETS = prediction_sets.PredictionSets(
  (0.9, 0.95), {'': (0.1, 0.14)}, {'': 99}, 1, 'lac'
)


def examples(size, num_classes=4, seed=0):
  rng = np.random.default_rng(seed)
  return (
    rng.dirichlet(np.full(num_classes, 0.5), size),
    rng.integers(num_classes - 1, size=size),
  )


@pytest.mark.parametrize('sets', [None, SETS])
@pytest.mark.parametrize('parts', [1, 7, 200])
def test_merged_statistics_give_the_scores_of_all_examples(parts, sets):
  probs, y = examples(200)
  rows = np.array_split(np.arange(200), parts)
  of = site_statistics.SiteStatistics.of
  by_site = {str(k): of(probs[r], y[r], sets) for k, r in enumerate(rows)}
  whole = site_statistics.merged(by_site)
  # The server accepts these sums.
  for each, size in zip([*by_site.values(), whole], [*map(len, rows), 200]):
    each.check(size)
  row = whole.row(sets)
  by_hand = {
    'num_examples': 200,
    'accuracy': metrics.accuracy(probs, y),
    'balanced_accuracy': metrics.balanced_accuracy(probs, y),
    'nll': metrics.negative_log_likelihood(probs, y),
    'ece': metrics.expected_calibration_error(probs, y),
  }
  for level, members in zip((0.9, 0.95), sets.classes(probs) if sets else ()):
    by_hand[f'coverage_{level:g}'] = members[np.arange(200), y].mean()
    by_hand[f'size_{level:g}'] = members.sum(-1).mean()
    single = members.sum(-1) == 1
    by_hand[f'single_{level:g}'] = single.mean()
    right = members[np.arange(200), y][single]
    by_hand[f'single_accuracy_{level:g}'] = right.mean()
  # The area under a curve is not a sum over sites.
  auroc = row.pop('auroc')
  alone = np.nanmean(metrics.one_against_rest(probs, y))
  assert auroc == (alone if parts == 1 else None)
  assert set(row) == set(by_hand)
  for name, value in by_hand.items():
    assert row[name] == pytest.approx(value, rel=1e-12), name


def test_scores_of_a_class_equal_those_computed_by_hand():
  probs, y = examples(50)
  found = site_statistics.SiteStatistics.of(probs, y, SETS)
  of_class = y == 1
  (members, _), row = SETS.classes(probs), found.class_row(1, SETS)
  assert row['num_examples'] == of_class.sum()
  assert row['recall'] == np.mean(probs[of_class].argmax(1) == 1)
  assert row['coverage_0.9'] == members[of_class, 1].mean()
  assert row['size_0.9'] == members[of_class].sum(1).mean()
  assert row['single_0.9'] == np.mean(members[of_class].sum(1) == 1)
  assert row['auroc'] == metrics.one_against_rest(probs, y)[1]
  # The last class has no examples.
  assert found.class_row(3, SETS) == {'num_examples': 0}


@pytest.mark.parametrize(
  'name, value',
  [
    ('auroc', lambda a: a + np.inf),
    ('auroc', lambda a: a + 1),
    ('binned', lambda a: 0 * a + 1e9),
    ('sizes', lambda a: a + 4 * 50),
    ('examples', lambda a: a + 2**62),
    ('examples', lambda a: a - 99),
    ('loss', lambda a: -a),
    ('right', lambda a: a + 50),
    ('single', lambda a: 0 * a),
  ],
)
def test_statistics_that_no_examples_can_have_are_rejected(name, value):
  found = site_statistics.SiteStatistics.of(*examples(50), SETS)
  with pytest.raises(ValueError, match='examples'):
    found._replace(**{name: value(getattr(found, name))}).check(50)


def numbers(size, seed=0, scale=0.5):
  """Returns predictions and labels; the true deviation is 1."""
  rng = np.random.default_rng(seed)
  mean, ones = rng.normal(size=size), np.ones(size)
  labels = mean + rng.normal(size=size)
  found = model.NumericPrediction(mean, scale * ones, scale**2 * ones, 0 * ones)
  return found, labels


def test_intervals_of_an_overconfident_model_reach_their_coverage_level():
  held, test = numbers(2000), numbers(20_000, seed=1)
  counts = site_statistics.HeldCounts.of(*held, prediction_sets.RESIDUAL).counts
  sets = prediction_sets.PredictionSets.of(
    {'': counts}, 1, prediction_sets.RESIDUAL
  )
  # The true quantiles are 1.645 and 1.960, in deviations twice as small.
  assert sets.half_widths() == pytest.approx([3.29, 3.92], rel=0.05)
  row = site_statistics.of(*test, sets).row(sets)
  assert row['coverage_0.9'] == pytest.approx(0.9, abs=0.015)
  assert row['width_0.9'] == pytest.approx(2 * sets.half_widths()[0] * 0.5)
  few = prediction_sets.PredictionSets.of(
    {'': counts * 0}, 1, prediction_sets.RESIDUAL
  )
  assert few.half_widths() == [np.inf, np.inf]


def test_the_sums_of_two_sites_give_the_scores_of_all_examples():
  predicted, labels = numbers(90)
  parts = [
    site_statistics.of(model.take(predicted, rows), labels[rows], None)
    for rows in (slice(0, 30), slice(30, 90))
  ]
  scores = metrics.summarize(predicted.evaluation(labels))
  names = 'rmse', 'nll', 'crps', 'pit_error'
  expected = {'num_examples': 90} | {name: scores[name] for name in names}
  whole = site_statistics.merged(dict(zip('ab', parts)))
  assert whole.row(None) == pytest.approx(expected)
  with pytest.raises(ValueError, match='counts'):
    parts[0].check(31)
  with pytest.raises(ValueError, match='loss'):
    parts[0]._replace(loss=np.array(np.nan)).check(30)


@pytest.mark.process
def test_the_binaries_report_and_predict_numeric_labels(tmp_path):
  x, noise = np.random.default_rng(0).normal(size=[2, 200])
  sites = np.tile(['a', 'b'], 100)
  y = 3 * x + (sites == 'b') + 0.3 * noise
  table = [['x', 'site', 'y'], *zip(x, sites, y)]
  config = Config(
    dataset=toys.write_table(tmp_path / 'data.csv', table),
    label_column='y', client_column='site', partition='natural',
    num_workers=1, num_clients=2, likelihood='gaussian', model='logistic',
    num_rounds=10, local_epochs=10, client_learning_rate=0.05,
    calibration_fraction=0.3,
  )  # fmt: skip
  run_dir = tmp_path / 'run'
  fake.train(run_dir, config)
  flags = [f'--run={run_dir}', '--personalize_epochs=5']
  flags += ['--projection=wasserstein']
  ((code, _, error),) = binaries.drive('experiments.report', [flags])
  assert code == 0, error
  rows = toys.table(run_dir / 'sites/sites.csv')
  assert [row['site'] for row in rows] == ['a', 'b']
  assert all(0 < float(row['personalized_rmse']) < 1 for row in rows)
  assert 'data:image' in (run_dir / 'sites/report.html').read_text('utf-8')

  path = tmp_path / 'predictions.csv'
  flags = [f'--run={run_dir}', f'--input={config.dataset}', f'--output={path}']
  ((code, _, error),) = binaries.drive('experiments.predict', [flags])
  assert code == 0, error
  first, *_ = toys.table(path)
  sets = prediction_sets.read(run_dir)
  half = sets.half_widths()[0] * float(first['standard_deviation'])
  assert float(first['guaranteed_low_0.9']) == pytest.approx(
    float(first['prediction']) - half, abs=1e-4
  )
