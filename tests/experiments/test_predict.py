"""From a run to predictions: by names, in a stream, in a fresh process."""

import csv
import importlib.util
import json
import os
import shutil
import subprocess
import sys

import binaries
import numpy as np
import pytest
import site_data

import bfl_tf
from bfl_tf.datasets import csv_files
from bfl_tf.runs import promises
from bfl_tf.trained import exporting, personalised, reopened
from experiments import main

pytestmark = pytest.mark.process

_FRESH = """
import json, sys
import numpy as np
import tensorflow as tf
import tf_keras

folder = sys.argv[1]
x = np.load(f'{folder}/x.npy')
loaded = tf.saved_model.load(f'{folder}/flipout/saved_model')
said = loaded.signatures['serving_default'](x=tf.constant(x))
said = {k: v.numpy() for k, v in said.items()}
said['class'] = said['class'].astype('S')
np.savez(f'{folder}/said.npz', **said)
model = tf_keras.models.load_model(f'{folder}/point/model.keras')
np.save(f'{folder}/keras.npy', model(x).numpy())
assert not [name for name in sys.modules if name.startswith('bfl_tf')]
assert 'tensorflow_probability' not in sys.modules
"""


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  return tmp_path_factory.mktemp('predict')


@pytest.fixture(scope='module')
def run_dir(folder):
  return site_data.play(folder)


@pytest.fixture(scope='module')
def fresh(folder, run_dir):
  """What a process without this package says of 600 examples."""
  (folder / 'b').mkdir()
  point = site_data.play(folder / 'b', variant='deterministic')
  x = np.random.default_rng(0).normal(size=[600, 2]).astype(np.float32)
  np.save(folder / 'x.npy', x)
  written = {
    name: exporting.export(bfl_tf.load(path), folder / name)
    for name, path in (('flipout', run_dir), ('point', point))
  }
  env = {k: v for k, v in os.environ.items() if k != 'PYTHONPATH'}
  subprocess.run(
    [sys.executable, '-c', _FRESH, str(folder)],
    cwd=folder, check=True, timeout=300, env=env,
  )  # fmt: skip
  return x, written, point


def test_a_saved_model_says_what_predict_says(folder, run_dir, fresh):
  x, written, _ = fresh
  assert [path.name for path in written['flipout']] == ['saved_model']
  ours = bfl_tf.load(run_dir).predict(x)
  with np.load(folder / 'said.npz') as archive:
    theirs = dict(archive)
  for name, values in ours._asdict().items():
    # That process rewrites its graph; float32 has steps of 6e-8 below 1.
    np.testing.assert_allclose(theirs[name], values, rtol=1e-5, atol=1e-7)
  kinds = np.array(site_data.KINDS)[ours.probs.argmax(1)]
  np.testing.assert_array_equal(theirs['class'].astype(str), kinds)
  # Of other draws it would not.
  other = bfl_tf.load(run_dir).predict(x, seed=1)
  assert not np.allclose(other.probs, ours.probs, rtol=1e-3)


def test_a_keras_model_takes_raw_examples(folder, fresh):
  x, written, point = fresh
  assert [path.name for path in written['point']] == [
    'saved_model', 'model.keras',
  ]  # fmt: skip
  probs = bfl_tf.load(point).predict(x).probs
  np.testing.assert_allclose(np.load(folder / 'keras.npy'), probs, rtol=1e-5)


def test_pieces_are_the_whole(run_dir):
  trained = bfl_tf.load(run_dir)
  x = np.random.default_rng(1).normal(size=[2 * csv_files.CHUNK + 9, 2])
  x = x.astype(np.float32)
  whole = trained.predict(x)
  size = csv_files.CHUNK
  pieces = [
    trained.predict(x[i : i + size], first=i) for i in range(0, len(x), size)
  ]
  for values, parts in zip(whole, zip(*pieces)):
    np.testing.assert_array_equal(values, np.concatenate(parts))


# By what the line must say: the flags behind those of a good call.
BAD = {
  'give --run, --input, --output': '--run=',
  'holds no run': '--run={tmp}',
  'none.csv cannot be read as a .csv file': '--input={tmp}/none.csv',
  "narrow.csv has no column 'height', which the run was trained on": (
    '--input={tmp}/narrow.csv'
  ),
  "row 3, column 'width' has 'NaN', which is not finite": (
    '--input={tmp}/nan.csv'
  ),
  "row 3, column 'height' is empty": '--input={tmp}/hole.csv',
  'wide.npz: x must hold raw examples of shape (2,)': '--input={tmp}/wide.npz',
  'nan.npz: x has values that are not finite': '--input={tmp}/nan.npz',
  'single.npz: x is one value, not an array': '--input={tmp}/single.npz',
  'x.npy must be a .csv or an .npz with x': '--input={tmp}/x.npy',
  'unnamed.npz lacks x; it needs x or x_test': '--input={tmp}/unnamed.npz',
  '--num_mc_samples=0: 0 is not': '--num_mc_samples=0',
  "a file of the run's own: name another": '--output={run}/metrics.csv',
  "checkpoint is a folder of the run's own, or in one: name another": (
    '--output={run}/checkpoints/checkpoint'
  ),
  "doubt is a folder of the run's own, or in one": '--output={run}/doubt',
  'p.csv cannot be written: name a file': '--output={tmp}/none/p.csv',
  'good.csv is read from too: name another file': '--output={tmp}/good.csv',
  'pipe cannot be written: name a file': '--output={tmp}/pipe',
  'is of another version (# bfl_tf 0.0.1)'.replace('# ', ''): (
    '--run={tmp}/old'
  ),
}


@pytest.fixture(scope='module')
def files(folder):
  lines = [row[::2] for row in site_data.rows(per_site=2)]
  shuffled = [[h, 'note', w] for w, h in lines]
  site_data.write(folder / 'good.csv', lines, ['width', 'height'])
  site_data.write(folder / 'other.csv', shuffled, ['height', 'id', 'width'])
  site_data.write(folder / 'narrow.csv', [[1]], ['width'])
  site_data.write(folder / 'nan.csv', [[1, 2], ['NaN', 1]], ['width', 'height'])
  site_data.write(folder / 'hole.csv', [[1, 2], [1, '']], ['width', 'height'])
  np.savez(folder / 'good.npz', x=np.array(lines, np.float32))
  np.savez(folder / 'wide.npz', x=np.ones([3, 5]))
  np.savez(folder / 'single.npz', x=np.float32(1))
  np.savez(folder / 'nan.npz', x=np.full([3, 2], np.nan))
  np.savez(folder / 'unnamed.npz', np.ones([3, 2]))
  (folder / 'x.npy').write_bytes(b'')
  os.mkfifo(folder / 'pipe')
  (folder / 'old').mkdir()
  (folder / 'old' / 'summary.json').write_text('{}')
  (folder / 'old' / 'flags.txt').write_text('# bfl_tf 0.0.1\n')


@pytest.fixture(scope='module')
def said(folder, files, run_dir):
  del files
  good = [f'--run={run_dir}', f'--output={folder}/p.csv']
  calls = [
    [*good, f'--input={folder}/{name}', f'--output={folder}/{name}.csv']
    for name in ('good.csv', 'other.csv', 'good.npz')
  ]
  calls += [
    [*good, f'--input={folder}/good.csv', flag.format(tmp=folder, run=run_dir)]
    for flag in BAD.values()
  ]
  return binaries.drive('experiments.predict', calls)


def read(path):
  with path.open(newline='') as file:
    return list(csv.DictReader(file))


def test_rows_of_a_file(folder, run_dir, said):
  assert [outcome[0] for outcome in said[:3]] == [0] * 3, said[:3]
  first, *others = (
    read(folder / f'{name}.csv')
    for name in ('good.csv', 'other.csv', 'good.npz')
  )
  x = np.array([row[::2] for row in site_data.rows(per_site=2)], np.float32)
  ours = bfl_tf.load(run_dir).predict(x)
  assert list(first[0]) == [
    'class', 'probability', 'normalized_entropy', 'aleatoric', 'epistemic',
  ]  # fmt: skip
  for row, p, entropy in zip(first, ours.probs, ours.normalized_entropy):
    assert row['class'] == site_data.KINDS[p.argmax()]
    assert float(row['probability']) == pytest.approx(p.max(), rel=1e-5)
    assert float(row['normalized_entropy']) == pytest.approx(entropy, rel=1e-5)
  # Columns are found by their names, in any order.
  assert others == [first, first]
  assert 'not used: id' in said[1][1]
  assert 'no sets: python -m experiments.sites' in said[0][1]


@pytest.mark.parametrize('message', BAD)
def test_bad_input(folder, said, message):
  code, _, error = dict(zip(BAD, said[3:], strict=True))[message]
  assert (code, error.count('\n')) == (2, 1), error
  assert message in error
  assert not list(folder.glob('p.csv')) and not list(folder.glob('.*.tmp'))


@pytest.mark.usefixtures('files')
def test_sets_and_tables_of_sites(folder, run_dir):
  """The commands of the README, in their order, by `bfl-tf`."""
  calls = [
    [f'--run={run_dir}', '--personalise_epochs=1'],
    ['--run='],
    [f'--run={run_dir}', '--calibrate_on_test=0.5'],
    [f'--run={folder}/old'],
    [f'--run={run_dir}', '--superlink=here', '--personalise_epochs=1'],
    ['--run=runs/wine', '--superlink=here'],
  ]
  good, *bad = binaries.drive('experiments.sites', calls)
  assert good[0] == 0, good
  for text in ('worst site', 'personalised_accuracy', 'sets of 0.9: every'):
    assert text in good[1]
  assert [code for code, *_ in bad] == [2] * 5
  assert 'leave --personalise_epochs and --calib' in bad[3][2]
  assert '--run=runs/wine: with --superlink it is a path on' in bad[4][2]
  assert {path.name for path in (run_dir / 'sites').iterdir()} == {
    'sites.csv', 'classes.csv', 'summary.csv', 'sites.png', 'classes.png',
    'coverage.png', 'scores.json', 'models',
  }  # fmt: skip
  assert f"sites' own models in {run_dir}/sites/models" in good[1]
  promise = json.loads((run_dir / 'conformal.json').read_text())
  assert promise['levels'] == [0.9, 0.95]
  run = reopened.reopen(run_dir)
  assert promise['num_examples'] == len(run.calibration.split.y)
  _sets_hold_for_the_samples_they_were_made_with(folder, run_dir)


@pytest.mark.usefixtures('files')
def test_predicts_with_a_sites_own_model(folder, run_dir):
  odd = personalised.folder(run_dir, 'odd')
  calls = [
    [f'--run={run}', f'--input={folder}/good.csv', f'--output={folder}/{n}.csv']
    for n, run in (('global', run_dir), ('odd', odd))
  ]
  flags = [f'--run={run_dir}', '--personalise_epochs=9']
  binaries.drive('experiments.sites', [flags])
  outcomes = binaries.drive('experiments.predict', calls)
  assert [code for code, *_ in outcomes] == [0, 0], outcomes
  ours, own = (read(folder / f'{name}.csv') for name in ('global', 'odd'))
  assert [r['class'] for r in ours] != [r['class'] for r in own]
  # Each model's sets are by its own threshold.
  x = np.array([row[::2] for row in site_data.rows(per_site=2)], np.float32)
  for place, rows in ((run_dir, ours), (odd, own)):
    probs = bfl_tf.load(place).predict(x).probs
    (likely, _) = promises.read(place).sets(probs)
    kinds = np.array(site_data.KINDS)
    written = [set(filter(None, row['set_0.9'].split('|'))) for row in rows]
    assert written == [set(kinds[each]) for each in likely]
  assert promises.read(run_dir).thresholds != promises.read(odd).thresholds


@pytest.mark.usefixtures('files')
def test_a_site_of_few_or_no_calibration_examples(folder, tmp_path):
  run_dir = site_data.play(tmp_path)
  trained = bfl_tf.load(run_dir)
  of_few = site_data.promise(18, trained.num_samples())
  own = [
    personalised.Personalised('few', trained.weights, of_few),
    personalised.Personalised('none', trained.weights, None),
  ]
  list(personalised.kept(run_dir, trained, own, 1))
  few, none = (personalised.folder(run_dir, each.site) for each in own)
  broken = tmp_path / 'broken'
  shutil.copytree(few, broken)
  (broken / 'conformal.json').write_text('{')
  outcomes = binaries.drive(
    'experiments.predict',
    [
      [f'--run={at}', f'--input={folder}/good.csv', f'--output={tmp_path}/{n}']
      for n, at in enumerate((few, none, broken))
    ],
  )
  assert 'set_0.95 is every class: 18 calibration examples' in outcomes[0][1]
  assert {row['set_0.95'] for row in read(tmp_path / '0')} == {
    '|'.join(site_data.KINDS)
  }
  assert 'no sets: experiments.sites --personalise_epochs' in outcomes[1][1]
  assert 'set_0.9' not in read(tmp_path / '1')[0]
  assert outcomes[2][0] == 2
  assert 'cannot be read: experiments.sites --person' in outcomes[2][2]


def _sets_hold_for_the_samples_they_were_made_with(folder, run_dir):
  np.savez(folder / 'x.npz', x=np.zeros([2, 2], np.float32))
  asked = [f'--run={run_dir}', f'--input={folder}/x.npz']
  same, other = binaries.drive(
    'experiments.predict',
    [
      [*asked, f'--output={folder}/sets.csv'],
      [*asked, f'--output={folder}/none.csv', '--num_mc_samples=1'],
    ],
  )
  assert 'no sets' not in same[1]
  assert 'set_0.9' in (folder / 'sets.csv').read_text()
  assert 'no sets: they hold for --num_mc_samples=' in other[1]
  assert 'set_0.9' not in (folder / 'none.csv').read_text()


def test_export(folder, run_dir):
  calls = [
    [f'--run={run_dir}', f'--output={folder}/exports/one'],
    [f'--run={run_dir}', f'--output={folder}/exports/one'],
    [
      f'--run={run_dir}',
      f'--output={folder}/exports/two',
      '--num_mc_samples=0',
    ],
    [f'--run={run_dir}', f'--output={folder}/good.csv/below'],
    [f'--run={run_dir}'],
    [f'--run={folder}', f'--output={folder}/exports/two'],
  ]
  (folder / 'good.csv').touch()
  good, *bad = binaries.drive('experiments.export', calls)
  assert good[0] == 0, good
  assert good[1].splitlines() == [
    f'{folder}/exports/one/saved_model',
    'no Keras model: the network has layers or functions that tf_keras lacks',
  ]
  messages = (
    'exports/one is there already: name a new folder',
    '--num_mc_samples=0: 0 is not',
    'good.csv',
    'give --run and --output',
    'holds no run',
  )
  for message, (code, _, error) in zip(messages, bad, strict=True):
    assert (code, error.count('\n')) == (2, 1), error
    assert message in error
  # Nothing half-made.
  assert [path.name for path in (folder / 'exports').iterdir()] == ['one']


def test_every_command_is_a_module():
  for module in main.COMMANDS.values():
    assert importlib.util.find_spec(module), module
