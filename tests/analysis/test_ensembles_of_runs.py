"""Tests of ensembles of runs: predictions, scores, files and errors."""

import json

import binaries
import fake
import numpy as np
import pytest
import tensorflow as tf
import toys

import bfl_tf
from bfl_tf import metrics
from bfl_tf.analysis import ensembles, exporting, loading, reports, risk
from bfl_tf.config.config import Config
from bfl_tf.runs import Run, tables

CONFIG = Config(
  dataset='toys:blobs', model='mlp', variant='deterministic', num_clients=3,
  num_rounds=2, num_workers=1, calibration_fraction=0.2, validation_split=0.1,
  data_seed=7, settings={'mlp.hidden_units': (4,)},
)  # fmt: skip
OWN_BIASES = {'client_parts': 'local_layers', 'local_layers.layers': '1/bias'}
CHANGES = {
  'a': {},
  'flipout': {'seed': 2, 'variant': 'flipout', 'num_rounds': 1},
  'own_a': OWN_BIASES,
  'own_b': OWN_BIASES | {'seed': 1},
}
MEMBERS = ('a', 'flipout')


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """Finished runs by name, and the ensemble `e` of two of them."""
  folder = tmp_path_factory.mktemp('runs')
  for name, changes in CHANGES.items():
    config = CONFIG.replace(**changes)
    Run(config, folder / name, False, toys.BUILT, draw_plots=False).execute()
  fake.execute(folder / 'other_data', CONFIG.replace(seed=3, data_seed=3))
  ensembles.write([folder / name for name in MEMBERS], folder / 'e')
  return folder


def arrays(path):
  with np.load(path / 'predictions.npz') as archive:
    return dict(archive)


def test_the_scores_are_those_of_the_mean_prediction(folder):
  runs = [arrays(folder / name) for name in MEMBERS]
  probs = np.mean([run['probs'].astype(float) for run in runs], 0)
  between = np.var([run['probs'].astype(float) for run in runs], 0).sum(-1)
  within = np.mean([run['epistemic_uncertainty'] for run in runs], 0)
  found, labels = arrays(folder / 'e'), runs[0]['labels']
  np.testing.assert_allclose(found['probs'], probs, rtol=1e-5)
  np.testing.assert_allclose(
    found['epistemic_uncertainty'], within + between, rtol=1e-4
  )
  summary = json.loads((folder / 'e' / 'summary.json').read_text('utf-8'))
  final, chosen = summary['final'], probs[np.arange(len(labels)), labels]
  assert final['accuracy'] == np.mean(probs.argmax(-1) == labels)
  assert final['nll'] == pytest.approx(-np.log(chosen).mean(), rel=1e-5)
  assert final['ece'] == pytest.approx(
    metrics.expected_calibration_error(probs, labels), rel=1e-4
  )
  assert {'validation_nll', 'mutual_information'} <= final.keys()
  rows = [tables.read(folder / name / 'metrics.csv') for name in MEMBERS]
  sums = tables.read(folder / 'e' / 'metrics.csv')
  for name in ('bytes_up', 'bytes_down', 'train_seconds'):
    expected = sum(row.get(name, 0) for table in rows for row in table)
    assert sum(row[name] for row in sums) == pytest.approx(expected)


def test_an_ensemble_is_loaded_reported_and_exported_as_a_run(folder, tmp_path):
  run = loading.load_run(folder / 'e')
  prediction = run.trained.predict(run.test.x)
  together = bfl_tf.load([folder / name for name in MEMBERS])
  expected, found = arrays(folder / 'e'), together.predict(run.test.x)
  served = tf.saved_model.load(exporting.export(run.trained, tmp_path / 'out'))
  of_graph = served.signatures['serving_default'](x=run.test.x)
  for name, values in prediction._asdict().items():
    assert values.tobytes() == expected[name].tobytes()
    assert values.tobytes() == found._asdict()[name].tobytes()
    np.testing.assert_allclose(of_graph[name], values, rtol=1e-4, atol=1e-7)
  held = run.trained.predict(run.calibration.x).probs
  fitted = metrics.fit_temperature(held, run.calibration.y)
  assert run.trained.temperature == pytest.approx(fitted)
  calibrated = run.trained.calibrated(prediction).probs
  tempered = metrics.tempered(prediction.probs, fitted)
  np.testing.assert_allclose(calibrated, tempered, rtol=1e-5)
  (whole,) = reports.report(run).summary
  assert whole['accuracy'] == np.mean(prediction.probs.argmax(-1) == run.test.y)
  with pytest.raises(ValueError, match='no weights of its own'):
    run.trained.posterior  # noqa: B018
  with pytest.raises(ValueError, match='an ensemble'):
    Run(CONFIG, folder / 'e', overwrite=True)


def test_personal_models_of_runs_predict_together(folder, tmp_path):
  paths = [folder / 'own_a', folder / 'own_b']
  final = ensembles.write(paths, tmp_path / 'e')['final']
  x, ensemble = toys.blobs().test.x, bfl_tf.load(tmp_path / 'e')
  with pytest.raises(ValueError, match='--site'):
    ensemble.predict(x)
  probs = [bfl_tf.load(p).personal('1').predict(x).probs for p in paths]
  found = ensemble.personal('1').predict(x).probs
  np.testing.assert_allclose(found, np.mean(probs, 0), rtol=1e-5)
  # The recalibration of a report on personal models is theirs.
  ensemble.risk = risk.Risk('0', 0.5, 'platt', {'': (1.0, 0.0)})
  assert ensemble.personal('1').has_recalibration
  of_runs = [bfl_tf.runs.read_runs(p)['personal_nll'][0] for p in paths]
  # By Jensen's inequality.
  assert final['personal_nll'] < np.mean(of_runs)


@pytest.mark.parametrize(
  'names, match',
  [
    (['a', 'a'], 'the same run'),
    (['a', 'other_data'], '--data_seed'),
    (['a', 'own_b'], 'own_b is not usable'),
    (['e', 'flipout'], 'no weights of its own'),
  ],
)
def test_runs_that_do_not_fit_are_an_error_and_nothing_is_written(
  folder, tmp_path, names, match
):
  with pytest.raises(ValueError, match=match):
    ensembles.write([folder / name for name in names], tmp_path / 'new')
  assert not [*tmp_path.iterdir()]


@pytest.mark.process
def test_the_command_writes_a_new_folder_only(folder):
  runs = f'--runs={folder}/own_a,{folder}/own_b'
  (code, out, _), again = binaries.drive(
    'experiments.ensemble', 2 * [[runs, f'--output_dir={folder}/new']]
  )
  assert code == 0 and 'negative log likelihood' in out
  assert again[0] == 2 and again[2].count('\n') == 1
