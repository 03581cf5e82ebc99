"""Tests of reports by site."""

import dataclasses
import re

import fake
import numpy as np
import pytest
import site_data
import toys

from bfl_tf import metrics, runs
from bfl_tf.analysis import (
  loading,
  personalized,
  prediction_sets,
  report_files,
  reports,
)
from bfl_tf.runs import checkpoints


@pytest.fixture(scope='module')
def run(sites_run):
  return loading.load_run(sites_run)


@pytest.fixture(scope='module')
def report(run):
  return reports.report(run)


def test_scores_of_each_site_equal_those_computed_by_hand(run, report):
  dataset = run.dataset
  assert [row['site'] for row in report.sites] == ['north', 'odd', 'south']
  assert [row['class'] for row in report.classes] == ['left', 'right', 'up']
  for row in report.sites:
    own = dataset.test.ids == row['site']
    # Random seeds depend on an example's index among all examples.
    probs = run.trained.predict(dataset.test.x).probs[own]
    y = dataset.test.y[own]
    assert row['num_examples'] == own.sum() == 12
    assert row['accuracy'] == np.mean(probs.argmax(1) == y)
    assert row['nll'] == metrics.negative_log_likelihood(probs, y)
    assert row['auroc'] == np.mean(metrics.one_against_rest(probs, y))
    held = report.sets.classes(probs)[0][np.arange(12), y]
    assert row['coverage_0.9'] == held.mean()


def test_the_summary_has_the_worst_site_mean_and_standard_deviation(report):
  values = [row['accuracy'] for row in report.sites]
  assert values[1] < 0.3 < 0.7 < min(values[0], values[2])
  over = {row['over']: row for row in report.summary}
  assert over['worst site']['accuracy'] == values[1]
  assert over['mean of all sites']['accuracy'] == pytest.approx(np.mean(values))
  spread = over['standard deviation of sites']['accuracy']
  assert spread == pytest.approx(np.std(values, ddof=1))
  assert over['worst site']['nll'] == max(r['nll'] for r in report.sites)


def written(folder):
  return {str(path.relative_to(folder)) for path in folder.rglob('*.*')}


def test_a_new_report_deletes_the_files_of_an_earlier_one(
  tmp_path, report, monkeypatch
):
  report_files.write(tmp_path, report)
  assert {'conformal.json', 'sites/sites.csv'} < written(tmp_path)
  other = dataclasses.replace(report, sites=[])
  with monkeypatch.context() as full:
    fake.stop(full, prediction_sets, 'write', 1, error=OSError('no space left'))
    with pytest.raises(OSError, match='no space left'):
      report_files.write(tmp_path, other)
  assert 'sites/scores.json' not in written(tmp_path)
  report_files.write(tmp_path, dataclasses.replace(other, sets=None))
  assert not {'conformal.json', 'sites/sites.csv'} & written(tmp_path)


def test_the_html_report_is_self_contained_and_escapes_text_of_sites(
  report, tmp_path
):
  sites = [{**row, 'site': f'<{row["site"]}>'} for row in report.sites]
  rejected = {'far': 'its <file> is gone'}
  report = dataclasses.replace(report, sites=sites, rejected=rejected)
  report_files.write(tmp_path, report)
  page = (tmp_path / 'sites/report.html').read_text('utf-8')
  # The page loads nothing.
  assert page.count('src="data:image/png;base64,') == 2
  assert not re.search(r'https?:|<link|<script', page)
  assert 'its &lt;file&gt; is gone' in page and '<odd>' not in page
  # The worst site is first.
  assert page.index('&lt;odd') < page.index('&lt;north')


def test_a_site_that_never_contributed_is_named_and_has_own_scores(
  tmp_path, capsys
):
  @toys.Engine
  def engine(experiment, state, clients):
    for client in clients:
      reply = fake.reply(experiment, state, client)
      is_lost = client == 1 or (client == 0 and state.round == 1)
      yield (client, TimeoutError()) if is_lost else reply

  config = site_data.config(
    site_data.write(tmp_path / 'sites.csv'),
    own_scores=('bfl_tf.metrics:negative_log_likelihood',),
  )
  run = runs.Run(config, tmp_path / 'run', engine=engine, draw_plots=False)
  run.execute()
  line = 'no accepted update of odd'
  assert capsys.readouterr().out.count('no accepted update') == 1
  report = reports.report(loading.load_run(tmp_path / 'run'))
  report_files.write(tmp_path / 'run', report)
  page = (tmp_path / 'run/sites/report.html').read_text('utf-8')
  assert line[1:] in page and page.count('accepted update') == 1
  assert all(r['negative_log_likelihood'] == r['nll'] for r in report.sites)


def test_a_class_that_the_sets_miss_is_found(report):
  # The 95 % Wilson interval of 8 of 12 ends at 0.86, that of 9 of 12 at 0.91.
  for right, wanted in ((8, ['up']), (9, [])):
    classes = [{**row, 'coverage_0.9': 1.0} for row in report.classes]
    classes[2]['coverage_0.9'] = right / 12
    poor = dataclasses.replace(report, classes=classes)
    assert [row['class'] for row in poor.poorly_covered(0.9)] == wanted


def test_a_data_set_without_sites_has_no_scores_by_site(tmp_path):
  config = fake.CONFIG.replace(num_rounds=1)
  fake.execute(tmp_path, config)
  run = loading.load_run(tmp_path, calibrate_on_test=0.5)
  assert len(run.calibration.y) == len(run.test.y) == 30
  report = reports.report(run)
  assert report.sites == []
  assert [row['over'] for row in report.summary] == ['all examples']
  assert report.sets.num_examples[''] == 30
  assert reports.report(loading.load_run(tmp_path)).sets is None
  with pytest.raises(ValueError, match='--partition'):
    personalized.train(run, checkpoints.restore(tmp_path), 1)


def test_changed_data_and_a_second_calibration_share_are_rejected(tmp_path):
  path = site_data.write(tmp_path / 'sites.csv')
  run_dir, config = tmp_path / 'run', site_data.config(path)
  fake.execute(run_dir, config)
  with pytest.raises(ValueError, match='--calibrate_on_test'):
    loading.load_run(run_dir, calibrate_on_test=0.5)
  site_data.write(path, site_data.rows(seed=1))
  with pytest.raises(ValueError, match='--dataset'):
    loading.load_run(run_dir)
