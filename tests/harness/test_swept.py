"""Tests of sweeps: combinations, draws, the best setting, tables of runs."""

import dataclasses
import shutil

from harness import made_runs
import pytest

from bfl_tf.config.config import Config
from bfl_tf.runs import study
from experiments.harness import search_space, study_table

_FLAGS = {'num_rounds': 2, 'proximal.weight': '0.5'}


def space(*grids, fixed=_FLAGS, typed=()):
  return search_space.space(search_space.GivenFlags(fixed, typed), grids)


def test_a_grid_has_every_combination_named_by_its_flags():
  found = space('client_parts=|proximal', 'proximal.weight=0.1|1').configs
  # Without FedProx, its weight does not give further runs.
  assert [*found] == [
    'client_parts=',
    'client_parts=proximal,proximal.weight=0.1',
    'client_parts=proximal,proximal.weight=1',
  ]
  assert [c.get('proximal.weight') for c in found.values()] == [None, 0.1, 1.0]
  assert {config.num_rounds for config in found.values()} == {2}
  assert [*space().configs] == ['all']


def test_two_tasks_with_one_name_are_rejected(tmp_path):
  paths = [tmp_path / folder / 'iid.flags' for folder in 'ab']
  for rounds, path in enumerate(paths, start=1):
    path.parent.mkdir()
    path.write_text(f'--num_rounds={rounds}')
  assert [*space(f'task={paths[0]}').configs] == ['task=iid']
  with pytest.raises(ValueError, match='rename'):
    space(f'task={paths[0]}|{paths[1]}')


def trials(*texts, number=3, **point):
  axes = search_space.axes(texts, [Config.of(point)])
  given = search_space.GivenFlags({})
  return search_space.trials(given, point, axes, number)


def test_draws_are_within_bounds_and_more_trials_keep_the_first_ones():
  rate, size = 'client_learning_rate=log:1e-4:1e-1', 'batch_size=uniform:8:64'
  few = [t.config.client_learning_rate for t in trials(rate).values()]
  many = [t.config for t in trials(rate, size, number=200).values()]
  rates = [config.client_learning_rate for config in many]
  assert rates[:3] == few
  assert 1e-4 <= min(rates) < 2e-4 and 5e-2 < max(rates) <= 1e-1
  # Half of them are below the geometric mean, within five standard errors.
  assert abs(sum(r < 10**-2.5 for r in rates) - 100) < 5 * 50**0.5
  assert {config.batch_size for config in many} <= {*range(8, 65)}
  # Listed values divide the draws; each has at least one.
  assert len(trials(rate, 'pooling=nwa|ws', number=6)) == 6
  assert len(trials(rate, 'pooling=nwa|ws|lp', number=2)) == 3


def test_axes_of_a_method_replace_others_and_unused_settings_are_left_out():
  texts = [
    'scaffold:client_learning_rate=0.1|0.2', 'client_learning_rate=0.3',
    'proximal.weight=0.1|1',
  ]  # fmt: skip
  scaffold = trials(*texts, method='scaffold')
  assert [*scaffold] == ['client_learning_rate=0.1', 'client_learning_rate=0.2']
  fedprox = trials(*texts, method='fedprox')
  assert [t.config.get('proximal.weight') for t in fedprox.values()] == [0.1, 1]
  assert {t.config.client_learning_rate for t in fedprox.values()} == {0.3}
  # A method that names no optimizer is tuned with both, at their own rates.
  texts = [
    'client_optimizer=adam|sgd', 'client_learning_rate=0.3',
    'sgd:client_learning_rate=0.5', 'ivon:client_learning_rate=0.7',
  ]  # fmt: skip
  rates = {
    name: [
      (t.config.client_optimizer, t.config.client_learning_rate)
      for t in trials(*texts, method=name).values()
    ]
    for name in ('fedavg', 'scaffold', 'ivon', 'bayes_admm')
  }
  assert rates == {
    'fedavg': [('adam', 0.3), ('sgd', 0.5)], 'scaffold': [('sgd', 0.5)],
    'ivon': [('ivon', 0.7)], 'bayes_admm': [('ivon', 0.3)],
  }  # fmt: skip
  own = 'pvi:pvi.damping=0.1'
  axes = search_space.axes([texts[0], own, 'pvi.damping=0.1'], ())
  of_scaffold = trials(texts[0], method='scaffold')
  search_space.check_used(axes[:2], [of_scaffold])
  with pytest.raises(ValueError, match='damping'):
    search_space.check_used(axes, [of_scaffold])
  # The ranges that a method declares.
  assert len(trials('default', method='fedprox')) == 3
  assert [*trials('default', method='fedavg')] == ['all']


def test_a_setting_takes_the_values_that_another_study_chose(tmp_path):
  path = tmp_path / 'trials.csv'
  path.write_text(
    'setting,values,seed,chosen_by\n'
    '"task=a,method=fedavg","client_optimizer=adam,client_learning_rate=1",0,\n'
    '"task=a,method=fedavg","client_optimizer=sgd,client_learning_rate=2",0,x\n'
    '"task=b,method=fedavg",all,0,x\n'
  )
  table = study_table.StudyTable(path)
  before = table.chosen('method=fedavg,task=a')
  given = search_space.GivenFlags({})
  axes = search_space.axes([str(path), 'batch_size=8'], ())
  (name,) = search_space.trials(given, {'method': 'fedavg'}, axes, 8, before)
  assert name == 'client_optimizer=sgd,client_learning_rate=2,batch_size=8'
  assert table.chosen('method=fedavg,task=b') == {}
  assert table.chosen('method=fedavg,task=c') is None


def test_trials_continue_beyond_an_end_of_the_rates():
  of = trials('client_optimizer=adam|sgd', 'client_learning_rate=0.1|0.2|0.4')
  given, every = search_space.GivenFlags({}), [*of.values()]

  def more(best):
    found = search_space.beyond(given, {}, best, every).values()
    rates = [trial.config.client_learning_rate for trial in found]
    optimizers = {trial.config.client_optimizer for trial in found}
    return rates, optimizers

  lowest, inside, highest = every[3:]
  assert more(lowest) == ([0.05, 0.025, 0.0125], {'sgd'})
  assert more(inside) == ([], set())
  assert more(highest) == ([0.8, 1.6, 3.2], {'sgd'})
  # Two values, and texts, have no ends to extend.
  assert not search_space.end('client_learning_rate', every[0], every[:2])
  of = trials('pooling=nwa|ws|lp').values()
  assert not any(search_space.end('pooling', each, of) for each in of)


@pytest.mark.parametrize(
  ('named', 'grids'),
  [
    ('--grid=', ['pooling=']),
    ('--grid=', ['']),
    ('--grid=pooling', ['pooling=nwa', 'pooling=ws']),
    ('--seeds', ['seed=0|1']),
    ('--poling .*--pooling', ['poling=nwa|ws']),
    ('--methods .*--method', ['methods=fedavg|pvi']),
    ('--pooling=nwaa', ['pooling=nwa|nwaa']),
    ('--proximal.weight', ['proximal.weight=0.1|1']),
  ],
)
def test_invalid_search_spaces_are_rejected(named, grids):
  with pytest.raises(ValueError, match=named):
    space(*grids)


def test_specified_settings_that_no_config_uses_are_rejected():
  typed = ['proximal.weight']
  assert len(space('client_parts=|proximal', typed=typed).configs) == 2
  grids = ['pooling=nwa|ws', 'task=configs/fair/iid.flags']
  assert all('task' in point for point in space(*grids).points.values())
  with pytest.raises(ValueError, match='proximal'):
    space(*grids, typed=typed)
  # --grid would replace it.
  with pytest.raises(ValueError, match='--pooling'):
    space('pooling=nwa|ws', typed=['pooling'])


def test_the_trial_with_the_best_mean_over_all_its_seeds_is_chosen(tmp_path):
  runs, nan = {}, float('nan')
  scores = {'nwa': (3, 1), 'ws': (1, 2), 'lp': (0, nan), 'wc': (0, None)}
  for rule, of_seeds in scores.items():
    for seed, score in enumerate(of_seeds):
      config = Config(pooling=rule, num_rounds=1, seed=seed)
      task = study.Point(config, tmp_path / f'{rule}{seed}', rule)
      runs.setdefault(rule, []).append(task)
      if score is not None:
        made_runs.finish(task, 0.5, validation_nll=score)
  assert search_space.best(runs, 'validation_nll') == ('ws', 1.5)
  assert search_space.best({'wc': runs['wc']}, 'validation_nll') is None


@pytest.mark.parametrize(
  ('named', 'score', 'flags'),
  [
    ('--choose_by', 'nll', {}),
    ('--choose_by', 'validation_rmse', {}),
    ('--validation_split', 'validation_nll', {'validation_split': 0}),
    ('--choose_by', 'validation_personal_nll', {}),
    ('--choose_by', 'validation_nll', {'method': 'fedper'}),
  ],
)
def test_a_score_that_cannot_choose_is_rejected(named, score, flags):
  config = Config.of({'validation_split': 0.2, **flags})
  with pytest.raises(ValueError, match=named):
    search_space.check_choice(score, config)


@pytest.mark.parametrize(
  ('named', 'text'),
  [
    # A score cannot choose the task.
    *(
      (f'--grid={key}', f'{key}=a|b')
      for key in ('partition', 'dirichlet.alpha', 'num_clients', 'dataset',
                  'model', 'central.noise_multiplier', 'attack',
                  'label_flip.fraction')
    ),
    ('--tune=num_rounds', 'num_rounds=log:0:1'),
    ('--tune=batch_size', 'batch_size=uniform:2:1'),
    ('--pools', 'pools=nwa|ws'),
    ('--tune=batch_size', 'batch_size'),
    ('--method=nobody', 'nobody:batch_size=1|2'),
  ],
)  # fmt: skip
def test_wrong_values_to_tune_are_rejected(named, text):
  with pytest.raises(ValueError, match=named):
    trials(text)


def test_a_combination_that_cannot_run_has_a_reason():
  grids = 'method=fedavg|fl_swag', 'client_learning_rate=0.1|0.2'
  found = space(*grids, fixed={})
  assert {config.method for config in found.configs.values()} == {'fedavg'}
  assert len(found.configs) == 2
  assert len(found.refused) == 2
  for point, reason in found.refused.values():
    assert point['method'] == 'fl_swag' and '--num_rounds=1' in reason


def _run(root, seed=0, **flags):
  config, place = Config(num_rounds=1, seed=seed, **flags), f'runs/seed{seed}'
  name = 'task=a,pooling=nwa'
  return study.Point(config, root / place, place, name, 'rate=1')


@pytest.fixture
def path(tmp_path):
  """A table with a finished run, whose directory was removed, and a failure."""
  path, axes = tmp_path / 'runs.csv', {'pooling': 'nwa'}
  table = study_table.StudyTable(path)
  made_runs.finish(_run(tmp_path), 0.5, nll=1.25)
  failed = _run(tmp_path, 1)
  failed.failure_path.write_text('ValueError: no data')
  for run in (_run(tmp_path), failed, _run(tmp_path, 2)):
    table.record(run, axes)
  table.write()
  shutil.rmtree(tmp_path / 'runs')
  return path


def test_a_run_with_a_row_needs_no_directory(tmp_path, path):
  table = study_table.StudyTable(path)
  done, *others = (table.attached(_run(tmp_path, seed)) for seed in range(3))
  assert done.is_done and done.scores == {'accuracy': 0.5, 'nll': 1.25}
  # A failed run, and one that had not started.
  assert not any(run.is_done for run in others)
  before = path.read_text('utf-8')
  assert 'no data' in before
  table.record(done, {'pooling': 'nwa'})
  table.write()
  assert path.read_text('utf-8') == before


def test_two_commands_write_one_table(tmp_path):
  root = tmp_path / 'new'
  both = [study_table.StudyTable(root / 'runs.csv') for _ in range(2)]
  for seed, table in enumerate(both):
    table.add(_run(tmp_path, seed), {'nll': seed / 2}, {})
    table.write()
  # A later choice replaces an earlier one.
  for rate in range(2):
    table = study_table.StudyTable(root / 'runs.csv')
    run = dataclasses.replace(_run(tmp_path, 2), values=f'rate={rate}')
    table.add(run, {'nll': 1.0}, {}, chosen_by='nll')
    table.write()
  read = study_table.StudyTable(root / 'runs.csv')
  assert read.chosen('task=a,pooling=nwa') == {'rate': '1'}
  nlls = [read.scores(_run(tmp_path, seed)) for seed in range(2)]
  assert nlls == [{'nll': 0.0}, {'nll': 0.5}]


def test_a_row_of_other_flags_is_an_error_and_one_by_hand_is_not(
  tmp_path, path
):
  other = _run(tmp_path, batch_size=7)
  with pytest.raises(ValueError, match='other flags'):
    study_table.StudyTable(path).attached(other)
  # The order of --grid does not matter.
  row = '"pooling=nwa,task=a",rate=1,0,0.75'
  path.write_text(f'setting,values,seed,nll\n{row}\n')
  assert study_table.StudyTable(path).attached(other).scores == {'nll': 0.75}
