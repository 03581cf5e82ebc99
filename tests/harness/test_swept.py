"""Tests of sweeps: combinations, draws, errors and the best setting."""

from harness import made_runs
import of_papers
import pytest

from bfl_tf.config.config import Config
from experiments.harness import cells, estimates, search_space

_FLAGS = {'num_rounds': 2, 'proximal.weight': '0.5'}


def test_a_grid_has_every_combination_named_by_its_flags():
  grids = ['client_parts=|proximal', 'proximal.weight=0.1|1']
  found = search_space.space(_FLAGS, [], grids).configs
  # Without FedProx, its weight does not give further runs.
  assert [*found] == [
    'client_parts=',
    'client_parts=proximal,proximal.weight=0.1',
    'client_parts=proximal,proximal.weight=1',
  ]
  assert [c.get('proximal.weight') for c in found.values()] == [None, 0.1, 1.0]
  assert {config.num_rounds for config in found.values()} == {2}
  assert [*search_space.space(_FLAGS, [], []).configs] == ['all']


def test_draws_are_within_bounds_and_more_draws_keep_the_first_ones():
  rate = 'client_learning_rate=log:1e-4:1e-1'
  few = [*search_space.space({}, [], [], [rate], 3).configs.values()]
  draws = [rate, 'batch_size=uniform:8:64']
  many = [*search_space.space({}, [], [], draws, 200).configs
          .values()]  # fmt: skip
  rates = [config.client_learning_rate for config in many]
  assert rates[:3] == [config.client_learning_rate for config in few]
  assert 1e-4 <= min(rates) < 2e-4 and 5e-2 < max(rates) <= 1e-1
  # Half of them are below the geometric mean, within five standard errors.
  assert abs(sum(r < 10**-2.5 for r in rates) - 100) < 5 * 50**0.5
  assert {config.batch_size for config in many} <= {*range(8, 65)}
  both = search_space.space({}, [], ['pooling=nwa|ws'], [rate], 3).configs
  assert len(both) == 6
  near = 'client_learning_rate=uniform:1.23451:1.23452'
  found = search_space.space({}, [], [], [near], 20).configs.values()
  rates = {config.client_learning_rate for config in found}
  assert len(rates) == 20 and 1.23451 <= min(rates) < max(rates) <= 1.23452


@pytest.mark.parametrize(
  ('named', 'arguments'),
  [
    ('--grid=', (['pooling='],)),
    ('--grid=', ([''],)),
    ('--grid=pooling', (['pooling=nwa', 'pooling=ws'],)),
    ('--grid=pooling', (['pooling=nwa'], ['pooling=log:1:2'])),
    ('--seeds', (['seed=0|1'],)),
    ('--poling .*--pooling', (['poling=nwa|ws'],)),
    ('--pooling=nwaa', (['pooling=nwa|nwaa'],)),
    ('--proximal.weight', (['proximal.weight=0.1|1'],)),
    ('--draw=num_rounds=log:0:1', ([], ['num_rounds=log:0:1'])),
    ('--draw=num_rounds=lin:1:2', ([], ['num_rounds=lin:1:2'])),
  ],
)
def test_invalid_search_spaces_are_rejected(named, arguments):
  with pytest.raises(ValueError, match=named):
    search_space.space(_FLAGS, [], *arguments)


@pytest.mark.parametrize(
  'more',
  [
    {'start': (of_papers.FRESH_HEAD,)},
    {'variant': 'bfl_tf.models.variants:Flipout'},
  ],
)
def test_the_time_of_any_method_is_estimated(more):
  config = Config(model='resnet20', num_server_examples=10, **more)
  assert estimates.core_seconds(config) > 0


def test_specified_settings_that_no_config_uses_are_rejected():
  typed = ['proximal.weight']
  assert (
    len(search_space.space(_FLAGS, typed, ['client_parts=|proximal']).configs)
    == 2
  )
  with pytest.raises(ValueError, match='proximal'):
    search_space.space(_FLAGS, typed, ['pooling=nwa|ws'])


_FEDPER = {'method': 'fedper', 'validation_split': 0.2}


def test_the_best_setting_is_written_without_its_seed(tmp_path):
  runs, nan = {}, float('nan')
  scores = {'nwa': (3, 1), 'ws': (1, 2), 'lp': (0, nan), 'wc': (0, None)}
  for rule, of_seeds in scores.items():
    for seed, score in enumerate(of_seeds):
      task = cells.Task(
        made_runs.cell(rule, pooling=rule), 'smoke', seed, tmp_path
      )
      runs.setdefault(rule, []).append(task)
      if score is not None:
        made_runs.finish(task, 0.5, validation_nll=score)
  assert search_space.best(runs, 'validation_nll') == ('ws', 1.5)
  assert search_space.best({'wc': runs['wc']}, 'validation_nll') is None
  path = tmp_path / 'best.flags'
  path.write_text(search_space.flags_of(runs['ws'][1].directory))
  config = Config.from_flagfile(path, seed=5)
  assert (config.pooling, config.seed) == ('ws', 5)
  with pytest.raises(ValueError, match='--choose_by=nll'):
    search_space.check_choice('nll', {})
  with pytest.raises(ValueError, match='--likelihood=categorical'):
    search_space.check_choice('validation_rmse', {'a': config})
  with pytest.raises(ValueError, match='--validation_split'):
    search_space.check_choice('validation_nll', {'a': config})
  with pytest.raises(ValueError, match='personal models'):
    search_space.check_choice('validation_personal_nll', {'a': config})
  with pytest.raises(ValueError, match='choose_by=validation_personal_nll'):
    search_space.check_choice('validation_nll', {'a': Config.of(_FEDPER)})


@pytest.mark.parametrize(
  'key', ['partition', 'dirichlet.alpha', 'num_clients', 'dataset', 'model',
          'central.noise_multiplier', 'attack', 'label_flip.fraction'],
)  # fmt: skip
def test_a_score_cannot_choose_the_task(key):
  text = f'{key}=a|b'
  with pytest.raises(ValueError, match=f'--{key}'):
    search_space.check_axes(['method=fedavg|pvi', text])
  with pytest.raises(ValueError, match=f'--draw={key}'):
    search_space.check_axes([], [text])
  search_space.check_axes(['client_learning_rate=1|2', 'central.clip_norm=1|2'])


def test_a_combination_that_cannot_run_has_a_reason():
  grids = ['method=fedavg|fl_swag', 'client_learning_rate=0.1|0.2']
  found = search_space.space({}, [], grids)
  assert {config.method for config in found.configs.values()} == {'fedavg'}
  assert len(found.configs) == 2
  assert len(found.refused) == 2
  for point, reason in found.refused.values():
    assert point['method'] == 'fl_swag' and '--num_rounds=1' in reason
