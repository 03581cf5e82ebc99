"""Tests of groups of examples, such as the visits of a person."""

import numpy as np
import pytest
import toys

from bfl_tf import data
from bfl_tf.config.config import Config
from bfl_tf.federation import evaluation, run_data


def visits(num_people=30, num_visits=8):
  """Returns visits: similar features and one random label per person."""
  rng = np.random.default_rng(0)
  people = np.repeat(np.arange(3 * num_people), num_visits)
  x = rng.normal(size=(3 * num_people, 4))[people]
  x += 0.2 * rng.normal(size=x.shape)
  y = rng.integers(2, size=3 * num_people)[people]
  order = rng.permutation(people.size)
  return x[order], y[order], people[order]


@pytest.fixture(name='path', params=['csv', 'npz'])
def fixture_path(tmp_path, request):
  """A file of three sites, each of which has persons 0 to 29."""
  x, y, people = visits()
  person, site = people % 30, people // 30
  if request.param == 'npz':
    path = tmp_path / 'visits.npz'
    np.savez(path, x=x, y=y, groups=person, client_ids=site)
    return str(path)
  header = ['person', 'site', *'abcd', 'label']
  rows = zip(person, site, *x.T, y, strict=True)
  return toys.write_table(tmp_path / 'visits.csv', [header, *rows])


def reading(path):
  table = {'client_column': 'site', 'group_column': 'person'}
  shares = {'calibration_fraction': 0.3, 'validation_split': 0.3}
  return {**(table if path.endswith('csv') else {}), **shares}


def of(split):
  return {*zip(split.ids.tolist(), split.groups.tolist(), strict=True)}


def test_a_group_is_in_one_split(path):
  dataset = data.load(path, **reading(path))
  assert dataset.train.x.shape[1] == 4
  parts = [of(split) for split in dataset.splits.values()]
  assert len(parts) == 4 and all(parts)
  # The same number at two sites is two groups.
  assert sum(map(len, parts)) == len(set.union(*parts)) == 90
  assert len({group for _, group in set.union(*parts)}) == 90
  assert len(of(dataset.test)) == 18
  halves = [of(split) for split in evaluation.halves(dataset)]
  assert not set.intersection(*halves)


@pytest.mark.parametrize('partition', ['iid', 'dirichlet', 'shards', 'natural'])
def test_a_group_is_at_one_client(path, partition):
  values = {'dataset': path, 'partition': partition, 'num_clients': 3}
  config = Config.of({**values, 'num_server_examples': 40, **reading(path)})
  dataset = run_data.load(config)
  parts, held = run_data.partition_dataset(config, dataset)
  parts = [*parts, held]  # The server has five persons.
  assert held.size == 40
  clients = [of(dataset.train.take(part)) for part in parts]
  assert sum(map(len, clients)) == len(set.union(*clients))
  together = np.sort(np.concatenate(parts))
  np.testing.assert_array_equal(together, np.arange(len(dataset.train.y)))


def test_more_clients_than_groups_are_rejected(path):
  values = {'dataset': path, 'num_clients': 80, 'partition': 'iid'}
  config = Config.of({**values, **reading(path)})
  with pytest.raises(ValueError, match=r'num_clients=80 exceeds .* groups'):
    run_data.partition_dataset(config, run_data.load(config))
