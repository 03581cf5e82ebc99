"""Tests of personalized posteriors by projection, and of data with sites."""

import json
import pathlib

import binaries
import numpy as np
import pytest
from scipy import optimize
from tensorflow_probability import distributions as tfd
import toys

from bfl_tf import data
from bfl_tf.analysis import loading, personalized, projection, reports
from bfl_tf.data import site_shares
from bfl_tf.runs import checkpoints


def gaussian(mean, scale):
  return toys.model([mean], scale)


def divergence_of(name, center, candidate):
  """Returns D(center, candidate) for Gaussians on the line."""
  one, other = (
    tfd.Normal(float(q.loc[0]), q.scale[0]) for q in (center, candidate)
  )
  if name == 'wasserstein':
    return (one.loc - other.loc) ** 2 + (one.scale - other.scale) ** 2
  if name == 'lp':
    return one.kl_divergence(other)
  return other.kl_divergence(one)


@pytest.mark.parametrize('name', ['wasserstein', 'lp', 'llp'])
def test_a_projection_minimizes_the_weighted_divergences(name):
  global_posterior, own, weight = gaussian(0.0, 0.5), gaussian(2.0, 1.5), 0.3

  def objective(values):
    candidate = gaussian(values[0], np.exp(values[1]))
    return float(
      (1 - weight) * divergence_of(name, global_posterior, candidate)
      + weight * divergence_of(name, own, candidate)
    )

  found = projection.barycenter(name, global_posterior, own, weight)
  best = optimize.minimize(objective, [0.5, 0.0], method='Nelder-Mead').x
  assert found.loc[0] == pytest.approx(best[0], abs=2e-3)
  assert found.scale[0] == pytest.approx(np.exp(best[1]), abs=2e-3)


def test_a_site_with_other_labels_gets_its_own_posterior(sites_copy):
  run_dir, run = sites_copy, loading.load_run(sites_copy)
  state = checkpoints.restore(run_dir)
  own = personalized.train(run, state, 40, 'wasserstein')
  kept = personalized.save(run_dir, run.trained, own, 40)
  rows = {row['site']: row for row in reports.report(run, kept).sites}
  odd = rows['odd']
  assert odd['own_weight'] > 0.5
  assert odd['personalized_accuracy'] > 0.7 > 0.3 > odd['accuracy']
  # Without a projection, the model is the fine-tuned one.
  plain = {one.site: one.model for one in personalized.train(run, state, 40)}
  scored = personalized.PersonalizedModel('odd', plain['odd'], None)
  (expected,) = (
    row for row in reports.report(run, [scored]).sites if row['site'] == 'odd'
  )
  assert odd['fine_tuned_nll'] == expected['personalized_nll']
  # A site without calibration examples has no projection.
  rows = dict(run.calibration.sites)
  others = np.concatenate([rows[site] for site in rows if site != 'odd'])
  partly = run._replace(calibration=run.calibration.take(others))
  models = personalized.train(partly, state, 1, 'wasserstein')
  assert {one.site for one in models if one.fine_tuned is None} == {'odd'}
  # Half of the 24 calibration examples choose the weight.
  folder = personalized.folder(run_dir, 'odd')
  stored = json.loads((folder / 'site.json').read_text('utf-8'))
  assert stored['own_weight'] == odd['own_weight']
  sets = json.loads((folder / 'conformal.json').read_text('utf-8'))
  assert sets['num_examples'] == {'': 12}


def test_test_examples_of_a_class_are_partitioned_like_training_examples():
  y_train = np.array([0] * 10 + [1] * 4)
  clients = [np.arange(7), np.arange(7, 12), np.arange(12, 14)]
  y_test = np.array([0] * 20 + [1] * 4 + [2])
  found = site_shares.test_clients(y_train, y_test, clients, seed=0)
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
