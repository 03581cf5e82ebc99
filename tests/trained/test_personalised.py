"""Models that sites train for themselves: kept, with sets of their own."""

import json
import pathlib
import shutil

import numpy as np
import pytest
import site_data

from bfl_tf import metrics
from bfl_tf import runs as runs_lib
from bfl_tf import trained as trained_lib
from bfl_tf.runs import checkpoints, promises
from bfl_tf.runs import flags_file as recorded
from bfl_tf.trained import personalised, reopened, reports


def keep(run_dir, run, epochs):
  """Trains for each site, and keeps it; returns the rows by site."""
  state = checkpoints.restore(run_dir / 'checkpoints')
  own = personalised.train(run, state, epochs)
  kept = personalised.kept(run_dir, run.trained, own, epochs)
  return {row['site']: row for row in reports.report(run, kept).sites}


def loc(run_dir, site):
  return trained_lib.load(personalised.folder(run_dir, site)).weights.loc


def test_a_sites_own_model_predicts_as_it_was_scored(tmp_path):
  run_dir = site_data.play(tmp_path)
  run = reopened.reopen(run_dir)
  table, shares = keep(run_dir, run, 2), dict(run.test.sites)
  assert [*table] == ['north', 'odd', 'south']
  for site, row in table.items():
    own = trained_lib.load(personalised.folder(run_dir, site))
    share = run.test.split.take(shares[site])
    probs = own.predict(share.x).probs
    said = (
      metrics.accuracy(probs, share.y),
      metrics.negative_log_likelihood(probs, share.y),
    )
    wanted = row['personalised_accuracy'], row['personalised_nll']
    assert said == pytest.approx(wanted, rel=1e-9)
  path = personalised.folder(run_dir, 'odd')
  assert json.loads((path / 'site.json').read_text()) == {
    'site': 'odd',
    'personalise_epochs': 2,
  }


def test_a_sites_sets_are_from_its_own_calibration_share(tmp_path):
  run_dir = site_data.play(tmp_path)
  run = reopened.reopen(run_dir)
  table, shares = keep(run_dir, run, 2), dict(run.test.sites)
  held = run.calibration
  for site, rows in held.sites:
    path = personalised.folder(run_dir, site)
    own, promise = trained_lib.load(path), promises.read(path)
    assert promise.num_examples == len(rows) == 24
    # The rank by hand: the 23rd and the 24th smallest score, ceil(25 * 0.9) and
    # ceil(25 * 0.95), each within the thousandth that its bin is wide.
    said = own.predict(held.split.x[rows]).probs
    scores = np.sort(1 - said[np.arange(len(rows)), held.split.y[rows]])
    limits = np.array(promise.thresholds)
    assert np.all(limits >= scores[[22, 23]] - 1e-6)
    assert np.all(limits <= scores[[22, 23]] + 1e-3 + 1e-6)
    share = run.test.split.take(shares[site])
    for level, sets in zip(
      promise.levels, promise.sets(own.predict(share.x).probs)
    ):
      covered = sets[np.arange(len(share.y)), share.y].mean()
      row = table[site]
      assert row[f'personalised_coverage_{level:g}'] == pytest.approx(covered)
      assert row[f'personalised_size_{level:g}'] == pytest.approx(
        sets.sum(-1).mean()
      )


def test_sets_that_are_every_class_have_no_score(tmp_path):
  run = reopened.reopen(site_data.play(tmp_path))
  model = run.trained.weights
  of_few = site_data.promise(18, run.trained.num_samples())
  own = [
    personalised.Personalised('odd', model, of_few),
    personalised.Personalised('north', model, None),
  ]
  rows = {row['site']: row for row in reports.report(run, own).sites}
  assert rows['odd']['personalised_coverage_0.9'] == 1
  assert 'personalised_coverage_0.95' not in rows['odd']
  assert 'personalised_coverage_0.9' not in rows['north']
  assert rows['north']['personalised_nll'] == rows['north']['nll']


@pytest.mark.parametrize('fraction, promised', [(0.0, False), (0.5, True)])
def test_a_run_without_a_calibration_share(tmp_path, fraction, promised):
  run_dir = site_data.play(tmp_path, calibration_fraction=0)
  run = reopened.reopen(run_dir, calibrate_on_test=fraction)
  table = keep(run_dir, run, 1)
  for site, row in table.items():
    read = promises.read(personalised.folder(run_dir, site))
    # Half of a site's twelve test rows are too few for a level.
    assert not any('coverage' in name for name in row if 'personal' in name)
    assert (read.num_examples if read else 0) == (6 if promised else 0)


def test_sites_models_are_replaced_together(tmp_path):
  run_dir = site_data.play(tmp_path)
  run = reopened.reopen(run_dir)
  keep(run_dir, run, 1)
  first = loc(run_dir, 'north')
  # One that breaks off leaves those before, and nothing else.
  model = run.trained.weights
  north = personalised.Personalised('north', model, None)
  broken = personalised.kept(run_dir, run.trained, [north], 9)
  next(broken)
  broken.close()
  # As does one that cannot be written.
  long = [
    personalised.Personalised(name, model, None) for name in ('a', 'x' * 300)
  ]
  with pytest.raises(ValueError, match='models cannot be kept'):
    list(personalised.kept(run_dir, run.trained, long, 9))
  found = {path.name for path in personalised.home(run_dir).iterdir()}
  assert found == {'north', 'odd', 'south'}
  assert np.array_equal(loc(run_dir, 'north'), first)
  keep(run_dir, run, 3)
  assert not np.array_equal(loc(run_dir, 'north'), first)
  assert not list(run_dir.glob('.site*'))


def test_a_sites_own_model_is_no_run(tmp_path):
  run_dir = site_data.play(tmp_path)
  keep(run_dir, reopened.reopen(run_dir), 1)
  path = personalised.folder(run_dir, 'odd')
  with pytest.raises(ValueError, match="holds a site's own model and no run"):
    runs_lib.Run(recorded.read_config(path), path, False)
  with pytest.raises(ValueError, match="is a site's own model: predict and"):
    reopened.reopen(path)
  path = personalised.folder(run_dir, 'north')
  shutil.rmtree(path / 'checkpoints')
  with pytest.raises(ValueError, match=r'experiments\.sites --personalise'):
    trained_lib.load(path)


@pytest.mark.parametrize(
  'site, name',
  [
    ('St. Mary & Co', 'St. Mary & Co'), ('a/b', 'a%2Fb'), ('..', '%2E.'),
    ('.git', '%2Egit'), ('Zürich', 'Zürich'), ('50 %', '50 %25'),
  ],
)  # fmt: skip
def test_the_folder_of_a_site(site, name):
  assert personalised.folder('runs/x', site) == (
    pathlib.Path('runs/x/sites/models') / name
  )
