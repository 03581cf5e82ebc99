"""Tests of sweeps: combinations, draws, errors and the best setting."""

from harness import made_runs
import pytest

from bfl_tf.config.config import Config
from bfl_tf.runs import study
from experiments.harness import search_space

_FLAGS = {'num_rounds': 2, 'proximal.weight': '0.5'}


def space(grids, fixed=_FLAGS, typed=()):
  return search_space.space(search_space.GivenFlags(fixed, typed), grids)


def test_a_grid_has_every_combination_named_by_its_flags():
  grids = ['client_parts=|proximal', 'proximal.weight=0.1|1']
  found = space(grids).configs
  # Without FedProx, its weight does not give further runs.
  assert [*found] == [
    'client_parts=',
    'client_parts=proximal,proximal.weight=0.1',
    'client_parts=proximal,proximal.weight=1',
  ]
  assert [c.get('proximal.weight') for c in found.values()] == [None, 0.1, 1.0]
  assert {config.num_rounds for config in found.values()} == {2}
  assert [*space([]).configs] == ['all']


def test_two_tasks_with_one_name_are_rejected(tmp_path):
  paths = [tmp_path / folder / 'iid.flags' for folder in 'ab']
  for rounds, path in enumerate(paths, start=1):
    path.parent.mkdir()
    path.write_text(f'--num_rounds={rounds}')
  assert [*space([f'task={paths[0]}']).configs] == ['task=iid']
  with pytest.raises(ValueError, match='rename'):
    space([f'task={paths[0]}|{paths[1]}'])


def trials(texts, number=3, point=(), fixed=_FLAGS):
  configs = [Config.of({**fixed, **dict(point)})]
  axes = search_space.axes(texts, configs)
  given = search_space.GivenFlags(fixed)
  return search_space.trials(given, dict(point), axes, number)


def test_draws_are_within_bounds_and_more_trials_keep_the_first_ones():
  rate = 'client_learning_rate=log:1e-4:1e-1'
  few = [t.config.client_learning_rate for t in trials([rate]).values()]
  many = [t.config for t in trials([rate, 'batch_size=uniform:8:64'], 200)
          .values()]  # fmt: skip
  rates = [config.client_learning_rate for config in many]
  assert rates[:3] == few
  assert 1e-4 <= min(rates) < 2e-4 and 5e-2 < max(rates) <= 1e-1
  # Half of them are below the geometric mean, within five standard errors.
  assert abs(sum(r < 10**-2.5 for r in rates) - 100) < 5 * 50**0.5
  assert {config.batch_size for config in many} <= {*range(8, 65)}
  # Each combination of listed values has as many draws.
  # Listed values divide the draws.
  assert len(trials([rate, 'pooling=nwa|ws'], 6)) == 6
  assert len(trials([rate, 'pooling=nwa|ws|lp'], 2)) == 3


def test_axes_of_a_method_replace_others_and_unused_settings_are_left_out():
  texts = [
    'scaffold:client_learning_rate=0.1|0.2', 'client_learning_rate=0.3',
    'proximal.weight=0.1|1',
  ]  # fmt: skip
  scaffold = trials(texts, point={'method': 'scaffold'}, fixed={})
  assert [*scaffold] == ['client_learning_rate=0.1', 'client_learning_rate=0.2']
  fedprox = trials(texts, point={'method': 'fedprox'}, fixed={})
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
      for t in trials(texts, point={'method': name}, fixed={}).values()
    ]
    for name in ('fedavg', 'scaffold', 'ivon', 'bayes_admm')
  }
  assert rates == {
    'fedavg': [('adam', 0.3), ('sgd', 0.5)], 'scaffold': [('sgd', 0.5)],
    'ivon': [('ivon', 0.7)], 'bayes_admm': [('ivon', 0.3)],
  }  # fmt: skip
  own = 'pvi:pvi.damping=0.1'
  axes = search_space.axes([texts[0], own, 'pvi.damping=0.1'], ())
  of_scaffold = trials(texts[:1], point={'method': 'scaffold'}, fixed={})
  search_space.check_used(axes[:2], [of_scaffold])
  with pytest.raises(ValueError, match='damping'):
    search_space.check_used(axes, [of_scaffold])
  # The ranges that a method declares.
  assert len(trials(['default'], point={'method': 'fedprox'}, fixed={})) == 3
  assert [*trials(['default'], point={'method': 'fedavg'}, fixed={})] == ['all']


@pytest.mark.parametrize(
  ('value', 'tried', 'expected'),
  [
    ('3', '123', 'highest'), ('1', '123', 'lowest'), ('2', '123', ''),
    ('2', '12', ''), ('lp', ['nwa', 'ws', 'lp'], ''),
  ],
)  # fmt: skip
def test_a_chosen_value_at_an_end_is_found(value, tried, expected):
  assert search_space.end(value, tried) == expected


@pytest.mark.parametrize(
  ('named', 'arguments'),
  [
    ('--grid=', (['pooling='],)),
    ('--grid=', ([''],)),
    ('--grid=pooling', (['pooling=nwa', 'pooling=ws'],)),
    ('--seeds', (['seed=0|1'],)),
    ('--poling .*--pooling', (['poling=nwa|ws'],)),
    ('--pooling=nwaa', (['pooling=nwa|nwaa'],)),
    ('--proximal.weight', (['proximal.weight=0.1|1'],)),
  ],
)
def test_invalid_search_spaces_are_rejected(named, arguments):
  with pytest.raises(ValueError, match=named):
    space(*arguments)


def test_specified_settings_that_no_config_uses_are_rejected():
  typed = ['proximal.weight']
  assert len(space(['client_parts=|proximal'], typed=typed).configs) == 2
  grids = ['pooling=nwa|ws', 'task=configs/fair/iid.flags']
  assert all('task' in point for point in space(grids).points.values())
  with pytest.raises(ValueError, match='proximal'):
    space(grids, typed=typed)


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
    ('--choose_by=nll', 'nll', {}),
    ('--choose_by', 'validation_rmse', {}),
    ('--validation_split', 'validation_nll', {'validation_split': 0}),
    ('--choose_by', 'validation_personal_nll', {}),
    ('--choose_by', 'validation_nll', {'method': 'fedper'}),
  ],
)  # fmt: skip
def test_a_score_that_cannot_choose_is_rejected(named, score, flags):
  config = Config.of({'validation_split': 0.2, **flags})
  with pytest.raises(ValueError, match=named):
    search_space.check_choice(score, config)


@pytest.mark.parametrize(
  'key', ['partition', 'dirichlet.alpha', 'num_clients', 'dataset', 'model',
          'central.noise_multiplier', 'attack', 'label_flip.fraction'],
)  # fmt: skip
def test_a_score_cannot_choose_the_task(key):
  with pytest.raises(ValueError, match=f'--grid={key}'):
    search_space.axes([f'{key}=a|b'], ())


@pytest.mark.parametrize(
  'text',
  ['num_rounds=log:0:1', 'batch_size=uniform:2:1', 'pools=nwa|ws', 'batch_size',
   'nobody:batch_size=1|2'],
)  # fmt: skip
def test_wrong_values_to_tune_are_rejected(text):
  with pytest.raises(ValueError, match='--'):
    trials([text])


def test_a_combination_that_cannot_run_has_a_reason():
  grids = ['method=fedavg|fl_swag', 'client_learning_rate=0.1|0.2']
  found = space(grids, {})
  assert {config.method for config in found.configs.values()} == {'fedavg'}
  assert len(found.configs) == 2
  assert len(found.refused) == 2
  for point, reason in found.refused.values():
    assert point['method'] == 'fl_swag' and '--num_rounds=1' in reason
