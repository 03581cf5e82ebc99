"""Tests of predict, report and export on a finished run."""

import shutil
import subprocess
import sys

import binaries
import numpy as np
import pytest
import site_data
import toys

import bfl_tf
from bfl_tf.analysis import prediction_sets

pytestmark = pytest.mark.process

_FRESH = """
import sys
import numpy as np
import tensorflow as tf

folder = sys.argv[1]
x = np.load(f'{folder}/x.npy')
loaded = tf.saved_model.load(f'{folder}/exported/saved_model')
served = loaded.signatures['serving_default'](x=tf.constant(x))
served = {k: v.numpy() for k, v in served.items()}
served['class'] = served['class'].astype('S')
np.savez(f'{folder}/served.npz', **served)
assert not [name for name in sys.modules if name.startswith('bfl_tf')]
assert 'tensorflow_probability' not in sys.modules
import bfl_tf
np.savez(f'{folder}/again.npz', **bfl_tf.load(sys.argv[2]).predict(x)._asdict())
"""
LINES = [row[::2] for row in site_data.rows(per_site=2)]
X = np.array(LINES, np.float32)
BOTH = ['width', 'height']

# Flags that follow a valid call; the error must name the first one.
BAD = """
--run={folder}
--input={folder}/narrow.csv
--input={folder}/wide.npz
--num_mc_samples=4294967297
--keep_columns=id
--output={folder}/run/metrics.csv
--output={folder}/none/p.csv
--output={folder}/good.csv
--limits_from={folder}/good.csv
--limits={folder}/good.csv
--event=down
--site=nowhere
""".strip().splitlines()


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """A folder with tables, a run, and `sited`, the run with a report."""
  folder = tmp_path_factory.mktemp('predict')
  site_data.write(folder / 'good.csv', LINES, BOTH)
  shuffled = [[h, f'P-{n}', w, ''] for n, (w, h) in enumerate(LINES)]
  header = ['height', 'id', 'width', 'note']
  site_data.write(folder / 'other.csv', shuffled, header)
  site_data.write(folder / 'far.csv', [LINES[0], ['1e38', '0']], BOTH)
  site_data.write(folder / 'narrow.csv', [[1]], ['width'])
  broken = [[*LINES[0]], ['0', 'tall'], ['1', ' 2', '3'], *LINES[3:]]
  site_data.write(folder / 'broken.csv', broken, BOTH)
  text = '\n'.join(';'.join(row) for row in [BOTH, *LINES])
  (folder / 'notation.csv').write_text(text.replace('.', ','), 'utf-8')
  np.savez(folder / 'good.npz', x=X)
  np.savez(folder / 'wide.npz', x=np.ones([3, 5]))
  run = site_data.execute(folder)
  sited = shutil.copytree(run, folder / 'sited')
  good, bad = binaries.drive(
    'experiments.report',
    [
      [f'--run={sited}', '--personalize_epochs=9'],
      [f'--run={run}', '--superlink=here', '--personalize_epochs=1'],
    ],
  )
  assert good[0] == 0, good
  assert bad[0] == 2 and 'superlink' in bad[2]
  return folder


# Run, input and other flags of valid calls, by the name of their output.
CALLS = {
  'good.csv': 'run good.csv',
  'other.csv': 'run other.csv --keep_columns=id',
  'good.npz': 'run good.npz',
  'notation.csv': 'run notation.csv --separator=; --decimal=,',
  # The limits come from the table of the site, then from the file.
  'limits': 'run far.csv --limits={folder}/new_limits.csv '
            '--limits_from={folder}/good.csv',
  'broken': 'run broken.csv --limits={folder}/new_limits.csv --keep_bad_rows '
            '--keep_columns=width',
  'far': 'sited far.csv',
  'sited': 'sited good.csv',
  'odd': 'sited/sites/models/odd good.csv',
  'one': 'sited good.csv --num_mc_samples=1',
}  # fmt: skip


@pytest.fixture(scope='module')
def outputs(folder):
  """Outputs of experiments.predict in one process, by name of the call."""
  calls = CALLS | {line: f'run good.csv {line}' for line in BAD}
  lines = []
  for name, call in calls.items():
    run, table, *flags = call.format(folder=folder).split()
    output = 'p.csv' if name in BAD else f'{name}.out'
    paths = [f'--run={folder}/{run}', f'--input={folder}/{table}']
    lines.append([*paths, f'--output={folder}/{output}', *flags])
  outcomes = dict(zip(calls, binaries.drive('experiments.predict', lines)))
  assert {name: outcomes[name][0] for name in CALLS} == dict.fromkeys(CALLS, 0)
  return outcomes


def test_predictions_for_files_equal_those_of_the_loaded_run(folder, outputs):
  names = ('good.csv', 'other.csv', 'good.npz', 'notation.csv')
  first, *others = (toys.table(folder / f'{name}.out') for name in names)
  run = bfl_tf.load(folder / 'run')
  ours, (low, high) = run.predict(X), run.quantiles(X)
  for number, kind in enumerate(site_data.KINDS):
    for end, wanted in (('', ours.probs), ('_q05', low), ('_q95', high)):
      column = [float(row[f'probability_{kind}{end}']) for row in first]
      assert column == pytest.approx(wanted[:, number], rel=1e-4)
    assert np.all(low[:, number] < high[:, number])
  for row, p, entropy in zip(first, ours.probs, ours.normalized_entropy):
    assert row['class'] == site_data.KINDS[p.argmax()]
    assert float(row['probability']) == pytest.approx(p.max(), rel=1e-5)
    assert float(row['normalized_entropy']) == pytest.approx(entropy, rel=1e-5)
  # Columns are found by name, in any order, and can be copied.
  assert [row.pop('id') for row in others[0]] == [f'P-{n}' for n in range(6)]
  assert others == [first, first, first]


@pytest.mark.usefixtures('outputs')
def test_rows_outside_of_limits_and_bad_rows_are_marked(folder):
  near, far = toys.table(folder / 'far.out')
  assert (near['out_of_range'], far['out_of_range']) == ('0', '1')
  assert far['set_0.9'] == far['set_0.95'] == '|'.join(site_data.KINDS)
  near, far = toys.table(folder / 'limits.out')
  assert far['warning'] == 'width' and far['class'] and not near['warning']
  limits = {row['column']: row for row in toys.table(folder / 'new_limits.csv')}
  wanted = np.quantile(X[:, 1], [0.005, 0.995])
  found = [float(limits['height'][end]) for end in ('low', 'high')]
  assert found == pytest.approx(wanted, rel=1e-4)
  rows = toys.table(folder / 'broken.out')
  assert [bool(row['error']) for row in rows] == [0, 1, 1, 0, 0, 0]
  assert "'tall'" in rows[1]['error'] and 'row 4' in rows[2]['error']
  # Other rows have the predictions of the complete table.
  for row, good in zip(rows, toys.table(folder / 'good.csv.out'), strict=True):
    wanted = '' if row['error'] else good['probability']
    assert row['probability'] == wanted


def test_invalid_input_gives_a_one_line_error_that_names_the_flag(
  folder, outputs
):
  for line in BAD:
    code, _, error = outputs[line]
    assert (code, error.count('\n')) == (2, 1), (line, error)
    flag, _, value = line.format(folder=folder).partition('=')
    assert flag in error or value in error, (line, error)
  assert 'north, odd, south' in outputs['--site=nowhere'][2]
  assert not list(folder.glob('p.csv')) and not list(folder.glob('.*.tmp'))


@pytest.mark.usefixtures('outputs')
def test_a_report_writes_personalized_models_with_their_own_sets(folder):
  sited, odd = folder / 'sited', folder / 'sited/sites/models/odd'
  assert {file.name for file in (sited / 'sites').iterdir()} == {
    'sites.csv', 'classes.csv', 'summary.csv', 'sites.png', 'reliability.png',
    'report.html', 'scores.json', 'models', 'coefficients.csv',
  }  # fmt: skip
  ours, own = (toys.table(folder / f'{name}.out') for name in ('sited', 'odd'))
  assert [r['class'] for r in ours] != [r['class'] for r in own]
  sets = prediction_sets.read(sited), prediction_sets.read(odd)
  assert sets[0].thresholds != sets[1].thresholds
  for place, of, rows in zip((sited, odd), sets, (ours, own)):
    (likely, _) = of.classes(bfl_tf.load(place).predict(X).probs)
    kinds = np.array(site_data.KINDS)
    written = [set(filter(None, row['set_0.9'].split('|'))) for row in rows]
    assert written == [set(kinds[each]) for each in likely]
  # Sets are valid only for their number of samples.
  assert 'set_0.9' not in toys.table(folder / 'one.out')[0]


def test_an_exported_model_predicts_alike_without_this_package(folder):
  run = folder / 'run'
  flags = [f'--run={run}', f'--output={folder}/exported']
  good, (code, _, error) = binaries.drive('experiments.export', [flags] * 2)
  assert good[0] == 0 and code == 2 and 'exported' in error, (good, error)
  x = np.random.default_rng(0).normal(size=[600, 2]).astype(np.float32)
  np.save(folder / 'x.npy', x)
  subprocess.run(
    [sys.executable, '-c', _FRESH, str(folder), str(run)],
    cwd=binaries.ROOT, check=True, timeout=300,
  )  # fmt: skip
  ours = bfl_tf.load(run).predict(x)
  again, theirs = (
    dict(np.load(folder / f'{name}.npz')) for name in ('again', 'served')
  )
  assert toys.same(list(again.values()), list(ours))
  for name, values in ours._asdict().items():
    # The other process rewrites its graph; float32 has steps of 6e-8 below 1.
    np.testing.assert_allclose(theirs[name], values, rtol=1e-5, atol=1e-7)
  kinds = np.array(site_data.KINDS)[ours.probs.argmax(1)]
  np.testing.assert_array_equal(theirs['class'].astype(str), kinds)


def test_without_a_usable_global_model_a_site_must_be_named(folder, tmp_path):
  run = site_data.execute(tmp_path, **site_data.LOCAL)
  for binary in ('predict', 'export'):
    flags = [f'--run={run}', f'--output={tmp_path / binary}']
    flags += [f'--input={folder}/good.csv'] * (binary == 'predict')
    (code, _, error), good = binaries.drive(
      f'experiments.{binary}', [flags, [*flags, '--site=odd']]
    )
    assert code == 2 and '--site' in error, error
    assert good[0] == 0 and (tmp_path / binary).exists(), good
