"""Tests of personalized models and their prediction sets."""

import json
import pathlib
import shutil

import numpy as np
import pytest
import site_data
import toys

from bfl_tf import analysis, federation, metrics
from bfl_tf.analysis import (
  exporting,
  loading,
  personalized,
  prediction_sets,
  report_files,
  reports,
  site_statistics,
)
from bfl_tf.federation import engine
from bfl_tf.runs import checkpoints


def train(run_dir, run, epochs):
  state = checkpoints.restore(run_dir)
  return personalized.train(run, state, epochs)


def keep(run_dir, run, epochs):
  """Trains and stores a model for each site; returns the rows by site."""
  own = train(run_dir, run, epochs)
  kept = personalized.save(run_dir, run.trained, own, epochs)
  return {row['site']: row for row in reports.report(run, kept).sites}


@pytest.fixture(scope='module')
def run(sites_run):
  return loading.load_run(sites_run)


@pytest.fixture(scope='module')
def kept(sites_run, run, tmp_path_factory):
  """A run with its sites' models, its data, and the table."""
  run_dir = tmp_path_factory.mktemp('kept') / 'run'
  shutil.copytree(sites_run, run_dir)
  return run_dir, run, keep(run_dir, run, 40)


def test_personalized_training_corrects_a_site_with_different_labels(kept):
  _, run, table = kept
  assert table['odd']['accuracy'] < 0.3 < 0.7
  assert table['odd']['personalized_accuracy'] > 0.7
  # The global model is unchanged.
  again = reports.report(run).sites
  assert [row['accuracy'] for row in again] == [
    row['accuracy'] for row in table.values()
  ]


def test_a_loaded_personalized_model_has_the_reported_scores(kept):
  run_dir, run, table = kept
  held, shares = run.calibration, dict(run.test.sites)
  for site, rows in held.sites:
    path = personalized.folder(run_dir, site)
    own, sets = analysis.load(path), prediction_sets.read(path)
    text = (path / 'site.json').read_text('utf-8')
    assert json.loads(text) == {'site': site, 'personalize_epochs': 40}
    # Sets use the site's own calibration share. The thresholds are the 23rd and
    # the 24th smallest score, ceil(25 * 0.9) and ceil(25 * 0.95), up to the
    # width of a bin.
    assert sets.num_examples[''] == len(rows) == 24
    probs = own.predict(held.x[rows]).probs
    scores = metrics.set_scores(probs)
    scores = np.sort(scores[np.arange(len(rows)), held.y[rows]])
    limits = np.array(sets.thresholds[''])
    assert np.all(limits >= scores[[22, 23]] - 1e-6)
    assert np.all(limits <= scores[[22, 23]] + 1e-3 + 1e-6)
    share = run.test.take(shares[site])
    one = site_statistics.SiteStatistics.of(
      own.predict(share.x).probs, share.y, sets
    )
    names = ('accuracy', 'nll', 'coverage_0.9', 'size_0.95')
    found = {name: table[site][f'personalized_{name}'] for name in names}
    expected = {name: one.row(sets)[name] for name in names}
    assert found == pytest.approx(expected, rel=1e-9)


def test_a_personalized_model_keeps_the_fitted_posterior_factor(run, tmp_path):
  trained = run.trained.replace(run.trained.weights)
  trained.factor = 0.25
  own = personalized.PersonalizedModel('north', trained.weights, None)
  assert list(personalized.save(tmp_path, trained, [own], 1)) == [own]
  assert analysis.load(personalized.folder(tmp_path, 'north')).factor == 0.25


def test_prediction_sets_from_too_few_examples_have_no_score(run):
  model = run.trained.weights
  too_few = site_data.sets(18, run.trained.num_samples())
  own = [
    personalized.PersonalizedModel('odd', model, too_few),
    personalized.PersonalizedModel('north', model, None),
  ]
  rows = {row['site']: row for row in reports.report(run, own).sites}
  assert rows['odd']['personalized_coverage_0.9'] == 1
  assert 'personalized_coverage_0.95' not in rows['odd']
  assert 'personalized_coverage_0.9' not in rows['north']
  nll = rows['north']['nll']
  assert rows['north']['personalized_nll'] == pytest.approx(nll)


def test_personalized_training_counts_only_examples_of_its_site(sites_run, run):
  changes = {'flipout.kl_examples': 'all', 'flipout.kl_reduction': 'tied'}
  config = run.trained.config.replace(**changes)
  other = analysis.Trained(config, run.trained.task, run.trained.weights)
  ours, theirs = (
    {one.site: one.model for one in train(sites_run, each, 2)}
    for each in (run, run._replace(trained=other))
  )
  assert all(toys.same(ours[site], theirs[site]) for site in ours | theirs)


def test_under_pvi_the_prior_of_a_site_is_its_cavity_distribution(tmp_path):
  """The model is the result of the site's next training without damping."""
  pvi = {
    'client_parts': ('pvi',), 'flipout.temperature': 1,
    'calibration_fraction': 0,
  }  # fmt: skip
  run_dir = site_data.execute(tmp_path, **pvi)
  run = loading.load_run(run_dir)
  own = {one.site: one.model for one in train(run_dir, run, 10)}
  config = run.trained.config.replace(**{'pvi.damping': 1})
  experiment = federation.Experiment.build(config, dataset=run.dataset)
  state = checkpoints.restore(run_dir)
  came = engine.Local()(experiment, state, range(3))
  sites = 'north', 'odd', 'south'
  sent = {sites[client]: update.model for client, update in came}
  assert all(toys.same(own[site], sent[site]) for site in sites)


def test_a_failed_write_leaves_no_incomplete_personalized_model(
  sites_copy, run, monkeypatch
):
  model = run.trained.weights

  def put(epochs, *names):
    own = [personalized.PersonalizedModel(name, model, None) for name in names]
    return list(personalized.save(sites_copy, run.trained, own, epochs))

  def disk_is_full(*_):
    raise OSError('full')

  folder = personalized.folder(sites_copy, 'north')
  put(1, 'north', 'odd')
  with monkeypatch.context() as patch:
    patch.setattr(checkpoints, 'save', disk_is_full)
    with pytest.raises(OSError, match='full'):
      put(9, 'north')
  with pytest.raises(ValueError, match='personalize_epochs'):
    analysis.load(folder)
  analysis.load(folder.with_name('odd'))
  put(3, 'north')
  assert toys.same(analysis.load(folder).weights, model)
  assert json.loads((folder / 'site.json').read_text('utf-8')) == {
    'site': 'north', 'personalize_epochs': 3,
  }  # fmt: skip


def test_the_folder_name_of_a_site_escapes_special_characters():
  home = pathlib.Path('runs/x/sites/models')
  for site, name in (
    ('Zürich & Co', 'Zürich & Co'),
    ('../a %', '%2E.%2Fa %25'),
  ):
    assert personalized.folder('runs/x', site) == home / name


def test_without_a_usable_global_model_each_site_has_its_personal_one(tmp_path):
  run_dir = site_data.execute(tmp_path, **site_data.LOCAL)
  run = loading.load_run(run_dir)
  trained, held, test = run.trained, run.calibration, run.test
  for refused in (
    lambda: trained.predict(test.x),
    lambda: exporting.export(trained, tmp_path / 'exported'),
  ):
    with pytest.raises(ValueError, match='is not usable'):
      refused()
  counts, found = {}, reports.report(run)
  for site, rows in held.sites:
    prediction = trained.personal(site).predict(held.x[rows])
    counts[site] = site_statistics.score_counts(prediction, held.y[rows], 'lac')
  sets = prediction_sets.PredictionSets.of(counts, 1, 'lac')
  assert found.sets == sets
  for row, (site, rows) in zip(found.sites, test.sites, strict=True):
    prediction = trained.personal(site).predict(test.x[rows])
    expected = site_statistics.of(prediction, test.y[rows], sets).row(sets)
    assert expected == pytest.approx({name: row[name] for name in expected})
  report_files.write(run_dir, found)
  assert prediction_sets.read(run_dir) == sets
  # The run fitted its temperature to the global model.
  with pytest.raises(ValueError, match='no fitted temperature'):
    reports.report(run, calibrated=True)
