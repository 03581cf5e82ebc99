"""Tests of packing and unpacking of messages."""

import json

from flwr import app
import numpy as np
import pytest
import toys
import wines

from bfl_tf import data
from bfl_tf.config.config import Config
from bfl_tf.flower import data_summaries, messages
from bfl_tf.methods import NAMED
from bfl_tf.runs import run_config
from experiments.harness import cells


@pytest.mark.parametrize(
  'line',
  [
    '--dataset=os:getcwd', '--dataset=/etc/secrets.csv',
    '--dataset=secrets.CSV', '--dataset=../secrets', '--client_parts=toys:Idle',
    '--attack="os:getcwd"', '--model=ähnlich:Net', '--a.b=evil:y',
    '--server_parts=distil,evil:x', 'dataset=digits', '# a:b', '--augment',
  ],
)  # fmt: skip
def test_a_server_may_not_name_custom_code_or_files(monkeypatch, line):
  monkeypatch.delenv(messages.OWN_CODE)
  with pytest.raises(ValueError, match=line.split('=')[0].strip('-')):
    messages.check_flags(f'{run_config.VERSION}\n{line}', False)
  monkeypatch.setenv(messages.OWN_CODE, '1')
  assert messages.check_flags(f'{run_config.VERSION}\n{line}', False) == [line]


def test_flags_of_presets_and_built_in_methods_are_accepted(monkeypatch):
  monkeypatch.delenv(messages.OWN_CODE)
  with pytest.raises(ValueError, match=r'bfl_tf 0\.0\.1'):
    messages.check_flags('# bfl_tf 0.0.1\n--dataset=digits', False)
  # The flags of studies are those of `bfl-tf sweep`.
  paths = {*cells.CONFIGS.rglob('*.flags')} - {*cells.CONFIGS.rglob('study.*')}
  presets = map(Config.from_flagfile, paths)
  methods = (Config.of({'method': n, **NAMED[n].needs}) for n in NAMED)
  for config in (*presets, *methods):
    lines = run_config.flag_lines(config)
    lines = [line for line in lines if 'experiments.' not in line]
    assert messages.check_flags('\n'.join(lines), True) == lines[1:]
  config = Config(
    dataset='mnist:3.0.1', train_split='train[:100]', label_column='a: b',
    client_parts=('scaffold',), client_learning_rate=1e-5,
  )  # fmt: skip
  lines = run_config.flag_lines(config)
  assert messages.check_flags('\n'.join(lines), False) == lines[1:]
  # A node with its own file reads no other data set.
  text = f'{run_config.VERSION}\n--dataset=own.csv'
  assert messages.check_flags(text, True) == ['--dataset=own.csv']


def test_arrays_of_objects_are_rejected_and_never_unpickled(tmp_path):
  array = np.array([{'evil': 1}], object)
  with pytest.raises(ValueError, match=r'[Oo]bject arrays'):
    messages.pack({'a': array})
  file = tmp_path / 'pickled.npy'
  np.save(file, array, allow_pickle=True)
  content = messages.pack({'client': 0})
  pickled = app.Array('object', (1,), 'numpy.ndarray', file.read_bytes())
  content['arrays']['a|loc'] = pickled
  with pytest.raises(ValueError, match='allow_pickle=False'):
    messages.unpack(content)


@pytest.mark.parametrize(
  'field, value',
  [
    ('counts', {f'{number}': 1 for number in range(20_000)}),
    ('counts', {'a': 10**8}),
    ('counts', {'a' * 2000: 1}),
    ('counts', {'\x1b[2Ja': 1}),
    ('counts', {'a': -1}),
    ('counts', 7),
    ('features', [[7, None]]),
    ('shape', [2**20, 2**20]),
    ('shape', []),
    ('held', {'test': 10**18, 'calibration': 0}),
    ('moments', [[1e18], [0.0], [0.0]]),
    ('dtype', 'object'),
    ('shape', [2**24] * 50_000),
    ('counts', {'=HYPERLINK("x")': 1}),
    ('counts', {'1': 1, '1.0': 1}),
    ('numbers', [[20], '', [1.0]]),
    ('numbers', [[20], [0.0] * 5, [1.0] * 5]),
  ],
)
def test_a_strange_introduction_is_rejected_before_it_is_used(
  tmp_path, field, value
):
  file, *_ = wines.wine(tmp_path)
  text = data_summaries.DataSummary.of(data.load(file)).to_json()
  fields = json.loads(text) | {field: value}
  with pytest.raises(ValueError, match='data_summary cannot be read') as error:
    data_summaries.DataSummary.from_json(json.dumps(fields))
  assert str(error.value).isprintable() and len(str(error.value)) < 500


@pytest.mark.parametrize(
  'column, cells, message',
  [
    ('label', (['0', '1'], ['0.0', '1.0']), 'client 1'),
    ('ward', (['A', 'B', 'C'], ['1', '2', '3']), r"client 1: .*'ward'"),
  ],
)
def test_columns_that_nodes_write_differently_are_rejected(
  tmp_path, column, cells, message
):
  summaries = {}
  for client, texts in enumerate(cells):
    columns = {'ward': 'AB', 'label': 'xy', column: texts}
    rows = [[of[n % len(of)] for of in columns.values()] for n in range(30)]
    path = toys.write_table(tmp_path / f'{client}.csv', [columns, *rows])
    summaries[client] = data_summaries.DataSummary.of(data.load(path))
  with pytest.raises(ValueError, match=message):
    data_summaries.merged(summaries)


def test_the_sums_of_nodes_show_a_site_with_another_unit(tmp_path):
  summaries, sugar = {}, np.random.default_rng(0).normal(90, 9, 90)
  for client, unit in enumerate([1, 1, 18]):
    path = tmp_path / f'{client}.csv'
    rows = [f'{x / unit:.3f},{"ny"[n % 2]}' for n, x in enumerate(sugar)]
    path.write_text('\n'.join(['sugar,label', *rows]))
    summaries[client] = data_summaries.DataSummary.of(data.load(str(path)))
  (line,) = data_summaries.far_sites(summaries)
  assert 'client 2' in line and "'sugar'" in line
  del summaries[2]
  assert not [*data_summaries.far_sites(summaries)]
