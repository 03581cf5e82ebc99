"""Tests of personalized models, their sets and projections."""

import json
import pathlib

import binaries
import fake
import numpy as np
import pytest
from scipy import optimize
import site_data
from tensorflow_probability import distributions as tfd
import toys

from bfl_tf import analysis, data, federation, metrics
from bfl_tf.analysis import (
  exporting,
  loading,
  personalized,
  prediction_sets,
  report_files,
  reports,
  site_statistics,
)
from bfl_tf.data import shares
from bfl_tf.federation import engine
from bfl_tf.runs import checkpoints


def train(run, epochs, rule=''):
  return personalized.train(run, run.trained.state, epochs, rule)


@pytest.fixture(scope='module')
def run(sites_run):
  return loading.load_run(sites_run)


@pytest.fixture(scope='module')
def kept(run, tmp_path_factory):
  """The folder of projected models of the sites, and the table by site."""
  run_dir = tmp_path_factory.mktemp('kept')
  own = train(run, 40, 'wasserstein')
  own = personalized.save(run_dir, run.trained, own, 40)
  return run_dir, {row['site']: row for row in reports.report(run, own).sites}


def test_a_site_with_other_labels_gets_its_own_posterior(run, kept):
  odd = kept[-1]['odd']
  assert odd['own_weight'] > 0.5
  assert odd['personalized_accuracy'] > 0.7 > 0.3 > odd['accuracy']
  # Without a projection, the model is the fine-tuned one.
  plain = [*train(run, 40)]
  assert [one.sets.num_examples[''] for one in plain] == [24] * 3
  rows = {row['site']: row for row in reports.report(run, plain).sites}
  assert odd['fine_tuned_nll'] == rows['odd']['personalized_nll']
  # A site without calibration examples has no projection.
  rows = dict(run.calibration.sites)
  others = np.concatenate([rows[site] for site in rows if site != 'odd'])
  partly = run._replace(calibration=run.calibration.take(others))
  models = train(partly, 1, 'wasserstein')
  assert {one.site for one in models if one.fine_tuned is None} == {'odd'}


def test_a_loaded_personalized_model_has_the_reported_scores(run, kept):
  (run_dir, table), held = kept, run.calibration
  shares = dict(run.test.sites)
  for site, rows in held.sites:
    path = personalized.folder(run_dir, site)
    own, sets = analysis.load(path), prediction_sets.read(path)
    weight = table[site]['own_weight']
    assert json.loads((path / 'site.json').read_text('utf-8')) == {
      'site': site, 'personalize_epochs': 40, 'own_weight': weight,
    }  # fmt: skip
    # Half of the site's calibration examples choose the weight.
    rest = held.take(rows[1::2])
    counts = metrics.score_counts(own.predict(rest.x).probs, rest.y)
    assert sets == prediction_sets.PredictionSets.of(
      {site: counts[np.newaxis]}, own.num_samples(), 'lac'
    )
    share = run.test.take(shares[site])
    one = site_statistics.SiteStatistics.of(
      own.predict(share.x).probs, share.y, sets
    )
    names = ('accuracy', 'nll', 'coverage_0.9', 'size_0.9')
    found = {name: table[site][f'personalized_{name}'] for name in names}
    expected = {name: one.row(sets)[name] for name in names}
    assert found == pytest.approx(expected, rel=1e-9)
    # Twelve examples are too few for a set that contains 95 %.
    assert 'personalized_coverage_0.95' not in table[site]


def test_personalized_training_counts_only_examples_of_its_site(run):
  changes = {'flipout.kl_examples': 'all', 'flipout.kl_reduction': 'tied'}
  config = run.trained.config.replace(**changes)
  other = analysis.Trained(config, run.trained.task, run.trained.weights)
  other.state = run.trained.state
  ours, theirs = (
    {one.site: one.model for one in train(each, 2)}
    for each in (run, run._replace(trained=other))
  )
  assert toys.same(ours, theirs)


def test_under_pvi_the_prior_of_a_site_is_its_cavity_distribution(tmp_path):
  """The model is the result of the site's next training without damping."""
  pvi = {
    'client_parts': ('pvi',), 'flipout.temperature': 1,
    'calibration_fraction': 0,
  }  # fmt: skip
  run_dir = site_data.execute(tmp_path, **pvi)
  run = loading.load_run(run_dir)
  own = {one.site: one.model for one in train(run, 10)}
  config = run.trained.config.replace(**{'pvi.damping': 1})
  experiment = federation.Experiment.build(config, dataset=run.dataset)
  state = checkpoints.restore(run_dir)
  came = engine.Local()(experiment, state, range(3))
  sites = 'north', 'odd', 'south'
  sent = {sites[client]: update.model for client, update in came}
  assert all(toys.same(own[site], sent[site]) for site in sites)


def test_a_failed_write_leaves_no_incomplete_personalized_model(
  run, tmp_path, monkeypatch
):
  trained = run.trained.replace(run.trained.weights)
  trained.factor = 0.25
  folder = personalized.folder(tmp_path, 'north')

  def put(epochs):
    own = personalized.PersonalizedModel('north', trained.weights, None)
    assert list(personalized.save(tmp_path, trained, [own], epochs)) == [own]

  put(1)
  with monkeypatch.context() as patch:
    fake.stop(patch, checkpoints, 'save', 1, error=OSError('full'))
    with pytest.raises(OSError, match='full'):
      put(9)
  with pytest.raises(ValueError, match='personalize_epochs'):
    analysis.load(folder)
  put(3)
  found = analysis.load(folder)
  assert toys.same(found.weights, trained.weights)
  # The fitted factor of the posterior is part of the model.
  assert found.factor == 0.25
  assert json.loads((folder / 'site.json').read_text('utf-8')) == {
    'site': 'north', 'personalize_epochs': 3,
  }  # fmt: skip


def test_the_folder_name_of_a_site_escapes_special_characters():
  assert personalized.folder('x', 'Zürich & Co').name == 'Zürich & Co'
  assert personalized.folder('x', '../a %').name == '%2E.%2Fa %25'


def test_without_a_usable_global_model_each_site_has_its_personal_one(tmp_path):
  run_dir = site_data.execute(tmp_path, **site_data.LOCAL)
  run = loading.load_run(run_dir)
  trained, held, test = run.trained, run.calibration, run.test
  with pytest.raises(ValueError, match='is not usable'):
    trained.predict(test.x)
  with pytest.raises(ValueError, match='is not usable'):
    exporting.export(trained, tmp_path / 'exported')
  counts, found = {}, reports.report(run)
  for site, rows in held.sites:
    prediction = trained.personal(site).predict(held.x[rows])
    held_counts = site_statistics.HeldCounts.of(prediction, held.y[rows], 'lac')
    counts[site] = held_counts.counts
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


# D(center, q) of Gaussians on the line, by the rule that minimizes it.
DIVERGENCES = {
  'wasserstein': lambda p, q: (p.loc - q.loc) ** 2 + (p.scale - q.scale) ** 2,
  'lp': tfd.kl_divergence,
  'llp': lambda p, q: q.kl_divergence(p),
}


@pytest.mark.parametrize('rule, divergence', DIVERGENCES.items())
def test_a_projection_minimizes_the_weighted_divergences(rule, divergence):
  both = tfd.Normal(0.0, 0.5), tfd.Normal(2.0, 1.5)

  def objective(values):
    q = tfd.Normal(float(values[0]), float(np.exp(values[1])))
    return float(0.7 * divergence(both[0], q) + 0.3 * divergence(both[1], q))

  models = [toys.model([q.loc], q.scale) for q in both]
  found = personalized.barycenter(rule, *models, 0.3)
  best = optimize.minimize(objective, [0.5, 0.0], method='Nelder-Mead').x
  assert found.loc[0] == pytest.approx(best[0], abs=2e-3)
  assert found.scale[0] == pytest.approx(np.exp(best[1]), abs=2e-3)


def test_test_examples_of_a_class_are_partitioned_like_training_examples():
  y_train = np.array([0] * 10 + [1] * 4)
  clients = [np.arange(7), np.arange(7, 12), np.arange(12, 14)]
  y_test = np.array([0] * 20 + [1] * 4 + [2])
  found = shares.test_clients(y_train, y_test, clients, seed=0)
  counts = [
    np.sum((found == k) & (y_test == c)) for c in (0, 1) for k in range(3)
  ]
  # Class 0: 7, 3, 0 training examples; class 1: 0, 2, 2; no client has class 2.
  assert counts == [14, 6, 0, 0, 2, 2]
  assert found[-1] == -1


@pytest.mark.process
def test_the_binary_writes_a_data_set_with_sites(tmp_path):
  path = tmp_path / 'sites.npz'
  flags = ['--dataset=digits', '--partition=dirichlet', '--num_clients=3']
  (good, again) = binaries.drive(
    'experiments.sites',
    [[*flags, f'--output={path}']] * 2,
    pathlib.Path(__file__).parents[1],
  )
  assert good[0] == 0 and again[0] == 2 and 'new file' in again[2]
  dataset = data.load(str(path))
  assert len(dataset.test.sites) == len(dataset.train.sites) == 3
  assert dataset.test.y.size == data.load('digits').test.y.size
