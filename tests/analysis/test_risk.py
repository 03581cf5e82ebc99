"""Tests of the risk of an event, from counts of the sites."""

import numpy as np
import pytest
from scipy import special
import site_data
from sklearn import linear_model
from sklearn import metrics as sk_metrics

from bfl_tf import analysis, metrics, runs
from bfl_tf.analysis import (
  loading,
  prediction_sets,
  report_files,
  reports,
  risk,
  site_statistics,
)

CLASSES = ('no', 'yes')


def examples(size, slope=1.0, intercept=0.0, seed=0):
  """Returns probabilities, and labels whose log odds are linear in theirs."""
  rng = np.random.default_rng(seed)
  z = rng.normal(-2, 1.5, size)
  y = (rng.random(size) < special.expit(slope * z + intercept)).astype(int)
  return np.stack([special.expit(-z), special.expit(z)], 1), y


def test_examples_are_counted_by_class_and_log_odds():
  half = np.array([0.5, 0.5])
  found = risk.counts(
    np.stack([half, half, [1e-30, 1], [0.9, 0.1]]), [0, 1, 1, 0]
  )
  assert found.sum() == 4 and found.sum(1).tolist() == [2, 2]
  middle, last = risk.NUM_BINS // 2, risk.NUM_BINS - 1
  assert found[:, middle].tolist() == [1, 1] and found[1, last] == 1
  # The log odds of 0.1 are -2.197, in the bin from -2.2 to -2.15.
  assert found[0, middle - 44] == 1
  assert risk.counts(np.eye(3), np.arange(3)).shape == (2, 0)
  # The risk of the other class has the opposite sign.
  ours, other = (risk.Risks.of(found, event) for event in (1, 0))
  assert sorted(-other.log_odds) == pytest.approx(sorted(ours.log_odds))
  assert ours.events.sum() == other.others.sum() == 2


def test_statistics_equal_those_of_scikit_learn():
  probs, y = examples(4000)
  found = risk.Risks.of(risk.counts(probs, y), 1)
  area, low, high = found.auroc()
  exact = sk_metrics.roc_auc_score(y, probs[:, 1])
  assert area == pytest.approx(exact, abs=1e-4)
  assert low < exact < high and high - low < 0.06
  # Without a prior, the fit is that of an unpenalized logistic regression.
  mapping, errors = found.fit((0, 0))
  x = np.repeat(found.log_odds, found.events + found.others)[:, np.newaxis]
  labels = np.concatenate(
    [np.repeat([1, 0], pair) for pair in zip(found.events, found.others)]
  )
  fitted = linear_model.LogisticRegression(C=1e9, tol=1e-8).fit(x, labels)
  assert mapping[0] == pytest.approx(fitted.coef_[0, 0], abs=1e-4)
  assert mapping[1] == pytest.approx(fitted.intercept_[0], abs=1e-4)
  assert abs(mapping[0] - 1) < 3 * errors[0] and errors[0] < 0.1
  row, positive = found.row(0.1), probs[:, 1] >= 0.1
  for name, of, right in (
    ('sensitivity', y == 1, positive),
    ('specificity', y == 0, ~positive),
    ('positive_predictive_value', positive, y == 1),
    ('negative_predictive_value', ~positive, y == 0),
  ):
    assert row[f'{name}_of'] == pytest.approx(of.sum(), rel=0.05)
    assert row[name] == pytest.approx(right[of].mean(), abs=0.02)
  assert sum(size for *_, size in found.groups()) == 4000


def test_few_examples_have_wide_intervals_or_no_statistic():
  probs, y = np.array([[0.9, 0.1]] * 3 + [[0.2, 0.8]]), np.array([0, 0, 0, 1])
  found = risk.Risks.of(risk.counts(probs, y), 1)
  area, low, high = found.auroc()
  assert area == high == 1 and low < 0.6
  # A separable table has no largest likelihood, also with a tie at its border.
  tied = risk.Risks(np.array([-1.0, 2.0]), np.array([0, 5]), np.array([5, 1]))
  for each in (found, tied):
    row = each.row(0.1)
    assert row['slope'] is None and np.isfinite(row['intercept'])
  assert np.isfinite(found.fit((4, 1))).all()
  for empty in ('events', 'others'):
    nothing = found._replace(**{empty: 0 * found.events})
    row = nothing.row(0.1)
    assert row['auroc'] is row['intercept'] is row['slope'] is None
  assert row['specificity'] is None


def test_the_fit_converges_from_a_very_wrong_start():
  # Newton's method without shorter steps diverges here.
  z = np.array([-9.0, -8.0, 8.0, 9.0])
  found = risk.Risks(z, np.array([50, 50, 0, 1]), np.array([1, 0, 50, 50]))
  mapping, errors = found.fit((0, 0))
  p = special.expit(mapping @ [z, np.ones(4)])
  residual = (found.events + found.others) * p - found.events
  np.testing.assert_allclose([residual.sum(), residual @ z], 0, atol=1e-6)
  assert mapping[0] < 0 and np.isfinite(errors).all()


@pytest.mark.parametrize('how', [*risk.RECALIBRATIONS])
def test_a_recalibration_from_counts_of_sites_finds_the_distortion(how):
  # The risk of the model is too extreme by 2, and by `platt` also too low.
  shift = 0.5 if how == 'platt' else 0.0
  held = {
    site: risk.counts(*examples(size, 0.5, shift, seed))
    for seed, (site, size) in enumerate({'a': 3000, 'b': 2000, 'c': 4}.items())
  }
  choice = risk.Risk(recalibrate=how)
  found = choice.fitted(CLASSES, held, np.zeros([2, 0], int))
  assert found.event == 'yes' and set(found.maps) == {'', 'a', 'b', 'c'}
  assert found.mapping() == pytest.approx((0.5, shift), abs=0.1)
  # A site with few examples keeps the fit of all sites.
  assert found.mapping('c') == pytest.approx(found.mapping(), abs=0.5)
  assert found.mapping('other') == found.mapping()
  together = {'': sum(held.values())}
  one = choice.fitted(CLASSES, together, np.zeros([2, 0], int))
  assert one.maps[''] == found.maps['']
  probs, y = examples(20_000, 0.5, shift, seed=9)
  after = risk.counts(found.apply(probs, CLASSES), y)
  row = risk.Risks.of(after, 1).row(found.threshold)
  assert row['slope'] == pytest.approx(1, abs=0.2)
  assert row['intercept'] == pytest.approx(0, abs=0.15)
  # Probabilities of the two classes stay complementary for either event.
  other = found._replace(event='no')
  np.testing.assert_allclose(other.apply(probs, CLASSES).sum(1), 1, rtol=1e-6)


def test_the_event_is_the_rarer_class_unless_it_is_named():
  counts = {'a': risk.counts(*examples(100))}
  for event, wanted in (('', 'yes'), ('no', 'no')):
    found = risk.Risk(event).fitted(CLASSES, counts, None)
    assert found.event == wanted
    rate = counts['a'].sum(1)[CLASSES.index(wanted)] / 100
    assert found.threshold == pytest.approx(rate, abs=1e-3)
  for named, choice, classes in (
    ('event', risk.Risk('maybe'), CLASSES),
    ('risk_threshold', risk.Risk(threshold=0.2), ('yes', 'no', 'maybe')),
    ('recalibrate', risk.Risk(recalibrate='platt'), CLASSES),
  ):
    with pytest.raises(ValueError, match=f'--{named}'):
      risk.check(choice, classes, False)


def two_classes(folder, per_site=300):
  """Writes a table of three sites with a rare class; site `odd` is shifted."""
  rng, lines = np.random.default_rng(0), []
  for site, shift in (('north', 0), ('odd', 1.5), ('south', 0)):
    for _ in range(per_site):
      x = rng.normal(size=2)
      z = 1.5 * x[0] + x[1] - 2.5 + shift
      kind = 'yes' if rng.random() < special.expit(z) else 'no'
      width = '' if rng.random() < 0.2 else f'{x[0]:.4f}'
      lines.append([width, site, f'{x[1]:.4f}', kind])
  return site_data.write(folder / 'sites.csv', lines)


@pytest.fixture(scope='module')
def run_dir(tmp_path_factory):
  folder = tmp_path_factory.mktemp('risk')
  config = site_data.config(two_classes(folder), final_num_mc_samples=16)
  runs.Run(config, folder / 'run', False, draw_plots=False).execute()
  return folder / 'run'


def test_a_report_has_the_risk_of_each_site_and_stores_its_recalibration(
  run_dir,
):
  run = loading.load_run(run_dir)
  choice = risk.Risk(recalibrate='platt')
  report = reports.report(run, choice=choice)
  assert [row['site'] for row in report.risks] == [
    risk.ALL, 'north', 'odd', 'south',
  ]  # fmt: skip
  whole, _, odd, south = report.risks
  assert whole['num_events'] == sum(r['num_events'] for r in report.risks[1:])
  # A fifth of the cells of one of two columns is missing.
  assert odd['missing'] == pytest.approx(0.1, abs=0.04)
  assert south['updates'] == south['updates_requested'] == 3
  # The site with more events has a larger intercept, and its own removes it.
  assert odd['intercept'] > south['intercept'] + 0.3
  assert abs(odd['intercept_own']) < abs(odd['intercept'])
  report_files.write(run_dir, report)
  trained = analysis.load(run_dir)
  assert trained.risk == report.risk
  raw = trained.predict(run.test.x)
  odds = risk.log_odds(trained.calibrated(raw).probs, 1)
  slope, intercept = report.risk.mapping()
  expected = slope * risk.log_odds(raw.probs, 1) + intercept
  np.testing.assert_allclose(odds, expected, atol=1e-3)
  # Each set of classes has its number of events.
  names, event = trained.task.classes, run.test.y == 1
  (members, _), found = report.sets.classes(raw.probs), report.by_set
  sets = np.array(['|'.join(np.array(names)[row]) for row in members])
  for row in (r for r in found if r['site'] == risk.ALL and r['level'] == 0.9):
    here = sets == row['set']
    expected = here.sum(), (here & event).sum()
    assert (row['num_examples'], row['num_events']) == expected, row
  assert sum(row['num_examples'] for row in found) == 4 * len(event)
  # A new report does not depend on the earlier one.
  again = reports.report(loading.load_run(run_dir))
  report_files.write(run_dir, again)
  assert again.risk.maps == {'': (1.0, 0.0)}
  assert not analysis.load(run_dir).has_recalibration


@pytest.mark.parametrize('by', ['', *prediction_sets.GROUPS])
def test_sets_by_group_reach_their_level_in_each_group(run_dir, by):
  run = loading.load_run(run_dir, sets_by=by)
  held = run.calibration
  counts = run.held_counts(held)
  sets = run.sets(counts)
  rare = np.mean(held.y)
  assert sets.by == (by or ('class' if rare < 0.2 else 'all'))
  sites = dict(held.sites)
  prediction = run.predict(held)
  inside = np.zeros(len(held.y), bool)
  for site, rows in sites.items():
    members, _ = sets.at(site).classes(prediction.probs[rows])
    inside[rows] = members[np.arange(len(rows)), held.y[rows]]
  # On the calibration examples, the fraction is at least the level.
  groups = {
    'all': {},
    'site': sites,
    'class': {name: held.y == c for c, name in enumerate(CLASSES)},
  }[sets.by]
  assert list(sets.num_examples) == ['', *groups]
  for rows in groups.values() or [slice(None)]:
    assert inside[rows].mean() >= 0.9
  assert reports.report(run).sets == sets


def test_a_class_with_few_calibration_examples_is_in_every_set():
  probs = np.array([[0.9, 0.1]] * 8 + [[0.2, 0.8]])
  held = site_statistics.HeldCounts.of(
    analysis.Prediction(probs, *[probs[:, 0]] * 3), np.zeros(9, int), 'lac'
  )
  found = prediction_sets.PredictionSets.of(
    {'a': held.counts}, 1, 'lac', classes=CLASSES
  )
  assert found.by == 'class'
  assert found.num_examples == {'': 9, 'no': 9, 'yes': 0}
  # Of nine scores, the threshold of 90 % is the largest; 95 % needs 19 scores.
  (low, none), (always, _) = (found.thresholds[name] for name in CLASSES)
  least = metrics.smallest_probability(low)
  assert least == pytest.approx(0.2, rel=0.02) and none == always == 1
  assert found.is_enough(0.9) and not found.is_enough(0.95)
  rows = np.array([[0.001, 0.999], [0.3, 0.7], [1.0, 0.0]])
  # A site receives only the limits.
  received = prediction_sets.PredictionSets.of_limits(found.limits, 'lac')
  for sets in (found, received):
    nine, every = sets.classes(rows)
    assert nine.tolist() == [[False, True], [True, True], [True, True]]
    assert every.all()
