"""Tests that nodes with their own files give the results of one process."""

import json
import pathlib

import fake
import numpy as np
import pytest
from sklearn import datasets
import toys
import wines
from wines import execute, wine, write

from bfl_tf import analysis, data, runs
from bfl_tf.analysis import loading
from bfl_tf.config.config import Config
from bfl_tf.data import moments
from bfl_tf.flower import client_side, data_summaries
from bfl_tf.runs import run_config


def equals_local(folder, files, server, labels, **changes):
  """Runs on files of nodes, and with all examples in one file.

  `labels` returns the labels of a split of a data set.
  """
  config = execute(folder / 'nodes', files, server, engine='flower', **changes)
  is_numeric = 'likelihood' in changes
  *parts, own = (data.load(f, is_numeric=is_numeric) for f in (*files, server))
  np.savez(
    folder / 'all.npz',
    x_train=np.concatenate([part.train.x for part in parts]),
    y_train=np.concatenate([labels(part, part.train) for part in parts]),
    x_test=np.concatenate([own.train.x, own.test.x]),
    y_test=np.concatenate([labels(own, own.train), labels(own, own.test)]),
    client_ids=np.repeat(range(3), [len(part.train.y) for part in parts]),
  )
  alone = config.replace(dataset=str(folder / 'all.npz'), engine='local')
  runs.Run(alone, folder / 'alone', False).execute()
  return fake.outcome(folder / 'nodes') == fake.outcome(folder / 'alone')


def test_a_run_on_files_of_nodes_equals_a_local_run_bit_for_bit(tmp_path):
  numbers = {name: n for n, name in enumerate(sorted(wines.NAMES))}

  def labels(dataset, split):
    return [numbers[dataset.class_names[c]] for c in split.y]

  *files, server = wine(tmp_path)
  assert equals_local(tmp_path, files, server, labels)
  # The model has the classes of all sites.
  task = analysis.load(tmp_path / 'nodes').task
  assert task.class_names == ('barbera', 'barolo', 'grignolino')
  assert [f.column for f in task.features] == list('abcdefghijklm')
  # The examples are on the nodes, so the run cannot be loaded with data.
  with pytest.raises(ValueError, match='clients trained on files of their'):
    loading.load_run(tmp_path / 'nodes')


def test_numeric_labels_on_nodes_equal_a_local_run_bit_for_bit(tmp_path):
  x, y = datasets.load_diabetes(return_X_y=True)
  owner = np.arange(len(y)) % 4
  y[owner == 2] = y[2]  # The labels of one site do not vary.
  *files, server = [
    write(tmp_path / f'{n}.csv', x[owner == n], y[owner == n], 'abcdefghij')
    for n in range(4)
  ]
  assert equals_local(
    tmp_path, files, server, lambda _, split: split.y, likelihood='gaussian'
  )


def test_inconsistent_files_of_nodes_are_rejected(tmp_path):
  one, other, third, server = wine(tmp_path)
  path = pathlib.Path(third)
  renamed = path.read_text('utf-8').replace('a,b,c', 'a,b,z', 1)
  path.write_text(renamed, 'utf-8')
  for last, message in (
    ('', r'clients 2 have no file of their own and others'),
    (third, r'client 2: its columns are'),
  ):
    with pytest.raises(ValueError, match=message):
      execute(tmp_path / 'out', [one, other, last], server)
  assert not (tmp_path / 'out').exists()


def test_missing_values_and_categories_equal_those_of_one_process(tmp_path):
  """Site 1 has no `ward` C and no `age`; site 2 lacks some values of `age`."""
  rng, header = np.random.default_rng(0), ['age', 'ward', 'dose', 'label']
  lines = {
    site: [
      [
        '' if site == 1 or n % 4 == 0 < site else f'{rng.normal():.3f}',
        'AB'[n % 2] if site == 1 else ('A', 'B', 'C', '')[n % 4],
        str(n % 3 + 5), 'xyz'[n % 3],
      ]
      for n in range(40)
    ]
    for site in range(3)
  }  # fmt: skip
  whole = [[*row, site] for site, rows in lines.items() for row in rows]
  options = {'calibration_fraction': 0.25, 'categorical_columns': ('dose',)}
  together = data.load(
    toys.write_table(tmp_path / 'all.csv', [[*header, 'site'], *whole]),
    client_column='site', **options,
  )  # fmt: skip
  sites, summaries = [], {}
  for site, rows in lines.items():
    path = toys.write_table(tmp_path / f'{site}.csv', [header, *rows])
    sites.append(data.load(path, **options))
    summaries[site] = data_summaries.DataSummary.of(sites[-1])
  merged = data_summaries.DataSummary.from_json(
    data_summaries.merged(summaries).to_json()
  )
  assert merged.features == together.features
  assert [*map(tuple, merged.features)] == [
    ('age', None), ('age', ''), ('ward', ''), ('ward', 'A'), ('ward', 'B'),
    ('ward', 'C'), ('dose', '5'), ('dose', '6'), ('dose', '7'),
  ]  # fmt: skip
  ids = together.train.ids
  whole = moments.merged(together.train.x[ids == str(n)] for n in range(3))
  for mine, theirs in zip(merged.moments, whole, strict=True):
    np.testing.assert_array_equal(mine, theirs)
  np.testing.assert_array_equal(merged.tell(sites[0]).std, together.std)
  for number, site in enumerate(sites):
    for share in ('train', 'calibration', 'test'):
      mine = getattr(merged.tell(site), share)
      theirs = getattr(together, share)
      theirs = theirs.take(theirs.ids == str(number))
      np.testing.assert_array_equal(mine.x, theirs.x)
      np.testing.assert_array_equal(mine.y, theirs.y)


def test_a_resumed_run_stops_if_nodes_have_exchanged_their_files(tmp_path):
  one, other, third, server = wine(tmp_path)
  execute(tmp_path / 'nodes', [one, other, third], server)
  kept = tmp_path / 'nodes' / 'nodes.json'
  assert list(json.loads(kept.read_text('utf-8'))) == ['0', '1', '2']
  # The sums over all nodes are unchanged.
  with pytest.raises(
    ValueError, match='files of some nodes have changed since'
  ):
    execute(tmp_path / 'nodes', [other, one, third], server, num_rounds=3)


def test_a_node_does_not_train_on_a_file_that_has_changed(tmp_path):
  file, *_, server = wine(tmp_path)
  own = client_side.OwnFile(file)
  flags = '\n'.join(
    run_config.flag_lines(Config.of(wines.SETTINGS | {'dataset': server}))
  )
  first = data_summaries.DataSummary.of(client_side.read(flags, own)[1])
  client_side.of(flags, own, first.to_json(), first.digest)
  client_side.of.cache_clear()
  path = pathlib.Path(file)
  path.write_text(
    path.read_text('utf-8').replace('1.', '2.', 1), encoding='utf-8'
  )
  with pytest.raises(ValueError, match='has changed during the run'):
    client_side.of(flags, own, first.to_json(), first.digest)
