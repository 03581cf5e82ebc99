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
    for seed, score in enumerate(scores):
      made_runs.finish(cells.Task(cell, 'smoke', seed, root), score)
  return root


@pytest.fixture(scope='module')
def groups(folder):
  """Returns the groups of runs, in the order of the scores above."""
  every = [
    folder / 'smoke' / 'posterior_pooling' / f'{rule}{rate}' / f'seed{seed}'
    for rule, rate in _SCORES
    for seed in range(3)
  ]
  return comparison.named(groups_lib.grouped(every))


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


def test_values_that_do_not_differ_from_the_best_of_a_task_are_marked():
  # Accuracies by seed. On IID data, b is clearly worse than a, and c is not.
  of = {('a', 'iid'): (8, 7, 9), ('b', 'iid'): (5, 4.1, 6.05),
        ('c', 'iid'): (9, 5, 8),
        ('b', 'shards'): (1, 2, 3)}  # fmt: skip
  groups = {
    f'{method} {partition}': groups_lib.Group(
      {'method': method, 'partition': partition}
    )
    for method, partition in of
  }
  values = {
    name: dict(enumerate(each)) for name, each in zip(groups, of.values())
  }
  found = comparison._among_best(
    groups, ['method', 'partition'], 'accuracy', values
  )
  assert found == {'a iid', 'c iid', 'b shards'}


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
  def group(method, partition, rate):
    return groups_lib.Group(
      {'method': method, 'partition': partition, 'client_learning_rate': rate}
    )

  # The rates were chosen for each setting. IID has no PVI, Dirichlet no FedAvg.
  settings = [
    group('fedavg', 'iid', '0.1'), group('scaffold', 'iid', '0.2'),
    group('fedavg', 'shards', '0.3'), group('scaffold', 'shards', '0.4'),
    group('scaffold', 'dirichlet', '0.5'),
  ]  # fmt: skip
  keys = ['method', 'partition']
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


def test_the_correction_is_over_settings_with_the_same_baseline():
  others = {'a': 'x', 'b': 'x', 'c': 'y'}
  found = comparison._holm(others, {'a': 0.01, 'b': 0.04, 'c': 0.04})
  assert found == {'a': True, 'b': True, 'c': True}
  found = comparison._holm(others, {'a': 0.03, 'b': 0.04, 'c': 0.04})
  assert found == {'a': False, 'b': False, 'c': True}
