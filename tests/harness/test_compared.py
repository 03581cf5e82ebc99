"""Tests of the comparison of settings: moments and paired tests."""

from harness import made_runs
import numpy as np
import pytest

import bfl_tf
from bfl_tf.runs import comparison, significance
from bfl_tf.runs import groups as groups_lib
from experiments.harness import cells

# Scores of three seeds, by rule and rate.
_SCORES = {
  ('nwa', 0.1): (0.5, 0.6, 0.7),
  ('lp', 0.1): (0.6, 0.7, 0.9),
  ('nwa', 0.2): (0.1, 0.2, 0.3),
  ('lp', 0.2): (0.1, 0.3, np.nan),
}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  root = tmp_path_factory.mktemp('runs')
  for (rule, rate), scores in _SCORES.items():
    overrides = {'pooling': rule, 'client_learning_rate': rate}
    cell = cells.Cell(made_runs.PAPER, f'{rule}{rate}', overrides)
    made_runs.finish_seeds(cell, root, *scores)
  return root


@pytest.fixture(scope='module')
def groups(folder):
  """The groups of runs, in the order of the scores above."""
  above = folder / 'smoke' / 'posterior_pooling'
  names = [f'{rule}{rate}/seed{n}' for rule, rate in _SCORES for n in range(3)]
  return comparison.named(groups_lib.grouped([above / name for name in names]))


def test_a_row_has_the_differing_flags_and_the_moments_of_the_score(groups):
  first, *_, last = comparison.rows(groups, ['accuracy'])
  assert first['setting'] == 'client_learning_rate=0.1 pooling=nwa'
  assert (first['pooling'], first['client_learning_rate']) == ('nwa', '0.1')
  assert first['mean'] == pytest.approx(0.6)
  assert first['standard_deviation'] == pytest.approx(0.1)
  assert first['standard_error'] == pytest.approx(0.1 / 3**0.5)
  assert (first['n'], first['seeds']) == (3, 3)
  # One of three runs diverged.
  assert (last['mean'], last['n'], last['seeds']) == (0.2, 2, 3)


def test_each_setting_has_a_paired_test_with_its_baseline(groups):
  found = comparison.rows(groups, ['accuracy'], 'pooling=nwa')
  nwa, lp, other_nwa, other_lp = found
  assert nwa['p_value'] is None and other_nwa['significant'] is None
  test = significance.student(np.array([0.1, 0.1, 0.2]))
  assert lp['difference'] == pytest.approx(0.4 / 3)
  assert lp['p_value'] == pytest.approx(2 * test.p_above)
  assert other_lp['difference'] == pytest.approx(0.05)
  # p is 0.057. A run of the last setting diverged, which therefore has no test.
  assert lp['significant'] is False and other_lp['p_value'] is None
  one = next(iter(groups))
  against_one = comparison.rows(groups, ['accuracy'], one)
  assert against_one[2]['difference'] == pytest.approx(-0.4)
  # Three equal differences: the two-sided sign test has p = 1/4.
  assert against_one[2]['p_value'] == 0.25


def test_compare_has_the_names_of_its_settings(groups):
  nwa, lp, *_ = groups.values()
  runs = {'NWA': nwa.directories(), 'LP': lp.directories()}
  frame = bfl_tf.compare(runs, baseline='NWA', scores=['accuracy'])
  assert frame.setting.tolist() == ['NWA', 'LP']
  assert frame.difference[1] == pytest.approx(0.4 / 3)
  # Two settings may have the same flags.
  runs['same'] = runs['NWA']
  frame = bfl_tf.compare(runs, baseline='NWA', scores=['accuracy'])
  assert frame.difference.tolist()[2] == 0 and not frame.significant[2]
  with pytest.raises(ValueError, match='LP must differ in the seed only'):
    bfl_tf.compare({'LP': runs['NWA'] + runs['LP']})


def test_tests_of_a_task_are_corrected_together():
  # A difference of (2, 3, 4) has p = 0.035, below 5 % and above 5 % / 2.
  of = {
    ('fedavg', 'iid'): (0, 0, 0), ('a', 'iid'): (2, 3, 4),
    ('b', 'iid'): (2, 3, 4), ('c', 'iid'): (-9, -8.9, -9.1),
    ('fedavg', 'shards'): (0, 0, 0), ('a', 'shards'): (2, 3, 4),
  }  # fmt: skip
  groups = {
    f'{method} {partition}': groups_lib.Group(
      {'method': method, 'partition': partition},
      scores={seed: {'accuracy': each} for seed, each in enumerate(values)},
    )
    for (method, partition), values in of.items()
  }
  found = comparison.rows(groups, ['accuracy'], 'fedavg')
  significant = {row['setting'] for row in found if row['significant']}
  assert significant == {'c iid', 'a shards'}
  # Values that do not differ significantly from the best are marked.
  best = {row['setting'] for row in found if row['best']}
  assert best == {'fedavg iid', 'a iid', 'b iid', 'a shards'}


def test_read_runs_returns_a_data_frame_of_finished_runs(folder):
  frame = bfl_tf.read_runs(folder)
  assert len(frame) == 12
  assert {*frame.columns} >= {'run', 'pooling', 'seed', 'accuracy', 'nll'}
  means = frame.groupby(['pooling', 'client_learning_rate'])['accuracy'].mean()
  assert means['nwa', 0.2] == pytest.approx(0.2)
  with pytest.raises(ValueError, match='no finished run'):
    bfl_tf.read_runs(folder / 'nothing')


def test_default_names_are_the_flags_that_differ():
  def names(*settings):
    return [*comparison.named([groups_lib.Group(each) for each in settings])]

  assert names({'a': '1', 'b': 'x'}, {'a': '1', 'b': 'y'}) == ['b=x', 'b=y']
  # A setting that only one group has is not part of the names.
  assert names({'p': 'm', 'm.s': '1'}, {'p': 'n'}) == ['p=m', 'p=n']
  # Nor is a setting of several groups that has one value in all of them.
  flipout = [{'v': 'f', 'f.s': s, 'f.c': '0'} for s in '12']
  assert names({'v': 'd'}, *flipout) == ['v=d f.s=-', 'v=f f.s=1', 'v=f f.s=2']


def test_a_setting_is_compared_with_the_baseline_of_its_task():
  # The rates were chosen for each setting. Dirichlet has no FedAvg.
  rows = [
    ('fedavg', 'iid', '0.1'), ('scaffold', 'iid', '0.2'),
    ('fedavg', 'shards', '0.3'), ('scaffold', 'shards', '0.4'),
    ('scaffold', 'dirichlet', '0.5'),
  ]  # fmt: skip
  keys = ['method', 'partition']
  flags = [*keys, 'client_learning_rate']
  settings = [groups_lib.Group(dict(zip(flags, row))) for row in rows]
  groups = comparison.named(settings, keys=keys)
  found = comparison.baselines(groups, 'fedavg', keys)
  assert found == {
    f'method=scaffold partition={name}': f'method=fedavg partition={name}'
    for name in ('iid', 'shards')
  }


def test_a_flag_of_several_settings_is_renamed_in_all():
  groups = [
    groups_lib.Group({'method': method, 'partition': partition})
    for method in ('fedavg', 'fedavgm')
    for partition in ('iid', 'shards')
  ]
  names = ['method=fedavg:FedAvg', 'method=fedavgm partition=iid:M']
  found = comparison.labels(groups, names)
  assert found == {'method=fedavg': 'FedAvg'}
  assert [*comparison.named(groups, names)][1:3] == [
    'method=FedAvg partition=shards', 'M',
  ]  # fmt: skip
