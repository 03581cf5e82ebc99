"""Tests of whole methods by name: `--method=NAME`."""

from absl import flags
import pytest

from bfl_tf import runs
from bfl_tf.config import catalog, flagfile, named_method
from bfl_tf.config.config import Config, FIELDS
from bfl_tf.federation.plan import Plan
from bfl_tf.methods import NAMED
from bfl_tf.runs import run_config

_TASK = {
  'partition': 'dirichlet', 'dirichlet.alpha': 0.3, 'mlp.hidden_units': (7,),
  'shards.classes_per_client': 3, 'client_optimizer': 'adam',
  'client_learning_rate': 0.02, 'adam.beta_1': 0.8,
  'flipout.temperature': 0.003, 'weighting': 'equal',
  'server_parts': ('momentum',), 'momentum.decay': 0.3,
}  # fmt: skip


@pytest.mark.parametrize('name', NAMED)
def test_every_method_makes_a_plan(name):
  task = {'num_server_examples': 9, **NAMED[name].needs}
  Plan.of(Config.of({**task, 'method': name}))


def test_a_method_replaces_the_method_of_the_task_and_nothing_else():
  pvi = Config.of({**_TASK, 'method': 'pvi'})
  assert pvi.settings == {
    'dirichlet.alpha': 0.3,
    'mlp.hidden_units': (7,),
    'adam.beta_1': 0.8,
    'flipout.prior_scale': 1.0,
    'pvi.damping': 0.1,
  }
  assert (pvi.weighting, pvi.server_parts) == ('auto', ())
  assert pvi.client_learning_rate == 0.02
  # A method that names an optimizer has its own rate and settings.
  ivon = Config.of({**_TASK, 'method': 'ivon'})
  assert ivon.client_learning_rate == 0.003
  assert 'adam.beta_1' not in ivon.settings
  # A setting of a component of the task that a grid may select.
  shards = Config.of({**_TASK, 'method': 'pvi', 'partition': 'shards'})
  assert shards.get('shards.classes_per_client') == 3


def test_another_method_starts_from_the_task_as_it_was_given():
  task = {**_TASK, 'num_rounds': 1, 'clients_per_round': 1, 'min_clients': 1}
  loaded = {name: Config.of({**task, 'method': name}) for name in NAMED}
  for first, config in loaded.items():
    for name in NAMED:
      found = config.replace(method=name)
      assert found == loaded[name] and found.method == name, (first, name)
  # A typed flag remains stronger, also where a method in between has no use
  # for it.
  typed = {'pvi.damping': 0.3, 'client_learning_rate': 0.5}
  pvi = Config.of({**task, **typed, 'method': 'pvi'}, typed)
  ivon = pvi.replace(method='ivon')
  assert ivon.replace(seed=1, method='pvi') == pvi.replace(seed=1)
  assert ivon.replace(seed=1).method == 'ivon'
  assert ivon.client_learning_rate == 0.5


def test_typed_flags_are_stronger_than_a_method_and_files_are_weaker(tmp_path):
  task = tmp_path / 'task.flags'
  task.write_text('--pvi.damping=0.9\n--seed=5\n--weighting=equal\n')
  for words, seed in (
    (['--pvi.damping=0.3', '--method=pvi', f'--flagfile={task}'], 5),
    (
      [f'--flagfile={task}', '--method=pvi', '--pvi.damping=0.3', '--seed=6'],
      6,
    ),
  ):
    values = flags.FlagValues()
    flagfile.define(values, FIELDS)
    known = catalog.known_settings()
    rest, given = flagfile.split(values, ['run', *words], known)
    values(rest)
    found = {**flagfile.fields(values, FIELDS), **given.texts}
    config = Config.of({**found, 'method': values.method}, given.typed)
    assert (config.get('pvi.damping'), config.weighting) == (0.3, 'auto')
    assert config.seed == seed


def test_the_name_of_a_method_is_a_label_outside_of_the_identity(tmp_path):
  config = Config.of({'method': 'pvi', 'pvi.damping': 0.5}, ['pvi.damping'])
  (tmp_path / 'flags.txt').write_text(run_config.text(config))
  read = runs.read_config(tmp_path)
  assert read == config and read.method == 'pvi'
  assert read.get('pvi.damping') == 0.5
  assert 'method' not in run_config.identity(config)
  # With another component, it is no longer this method.
  typed = {'method': 'fedavg', 'pooling': 'median'}
  assert Config.of(typed, typed).method == ''
  assert config.replace(weighting='equal').method == ''


@pytest.mark.parametrize(
  'text',
  [
    '--num_rounds=3', '--mlp.hidden_units=3', '--pvi.damping=0.3',
    '--client_learning_rate=1', '--method=other.flags',
  ],
)  # fmt: skip
def test_a_flag_that_no_method_has_is_rejected(tmp_path, text):
  path = tmp_path / 'mine.flags'
  path.write_text(f'--method=fedavg\n--pooling=lp\n{text}\n')
  with pytest.raises(ValueError, match=text.partition('=')[0]):
    Config.of({'method': str(path)})


def test_a_method_file_has_the_flags_of_its_method_and_its_own(tmp_path):
  path = tmp_path / 'slow.flags'
  path.write_text(
    '--method=fedlap_cov\n--pvi.damping=0.02\n--client_optimizer=ivon\n'
  )
  slow = Config.of({'method': path})
  assert slow.method == 'slow'
  typed = {'pvi.damping': 0.02, 'client_optimizer': 'ivon'}
  assert slow == Config.of({'method': 'fedlap_cov', **typed}, typed)
  found = named_method.read(path)
  assert [*found.tune] == ['pvi.damping']
  assert 'laplace.prior_scale' not in found.flags
  path.write_text('--variant=deterministic\n')
  with pytest.raises(ValueError, match='--method'):
    Config.of({'method': path})


_MODULE = """
import dataclasses
from bfl_tf.methods import Method
from bfl_tf.server.pooling import rules

@dataclasses.dataclass(frozen=True)
class Mean(rules.NaiveWeightedAverage):
  share: float = 0.5

fast = Method((Mean(share=0.3),))
other = {'pooling': 'lp'}
"""


def test_a_method_of_a_user_has_a_label_and_a_digest(tmp_path, monkeypatch):
  (tmp_path / 'methods_of_my_own.py').write_text(_MODULE)
  monkeypatch.syspath_prepend(tmp_path)
  config = Config.of({'method': 'methods_of_my_own:fast'})
  assert (config.method, config.get('Mean.share')) == ('fast', 0.3)
  digest = '# digest of --method=methods_of_my_own:fast '
  assert digest in run_config.text(config)
  # Its settings are dropped with the component that a typed flag replaces.
  assert not config.replace(pooling='lp').settings
  for name in ('other', 'third'):
    with pytest.raises(ValueError, match=f'--method=methods_of_my_own:{name}'):
      Config.of({'method': f'methods_of_my_own:{name}'})


@pytest.mark.parametrize(
  ('values', 'named'),
  [
    ({'method': 'pvy'}, "'pvi'"),
    ({'method': 'fl_swag'}, '--num_rounds=1'),
  ],
)
def test_a_task_that_does_not_fit_is_rejected(values, named):
  with pytest.raises(ValueError, match=named):
    Config.of(values, typed=values)
