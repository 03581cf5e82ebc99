"""Every field has a text and bounds; flags and files say the same config."""

import dataclasses
import inspect
import pathlib
import typing

import pytest

from bfl_tf import federation, models, training
from bfl_tf.federation import config as config_lib
from bfl_tf.federation import records
from experiments import flags

FIELDS = dataclasses.fields(federation.Config)
TYPES = typing.get_type_hints(federation.Config)
PRESETS = sorted(
  (pathlib.Path(__file__).parents[2] / 'configs').glob('*.flags')
)
# Names and switches; what they may be is checked where they are looked up.
UNBOUNDED = (str, bool)


@pytest.mark.parametrize('field', FIELDS, ids=lambda field: field.name)
def test_help_and_bounds(field):
  bounds = field.metadata['bounds']
  assert len(field.metadata['help']) > 5
  of_many = isinstance(field.default, tuple)
  kind = TYPES[field.name]
  kind = typing.get_args(kind)[0] if of_many else kind
  assert bounds or kind in UNBOUNDED, f'{field.name} has no bounds'
  wrong = [float('nan')] if bounds and kind is float else []
  for bound, value in bounds.items():
    step = {'least': -1, 'above': 0, 'below': 0}[bound]
    wrong.append(value + step * (1 if kind is int else 1e-9))
  for value in wrong:
    with pytest.raises(ValueError, match=f'^--{field.name}='):
      federation.Config(**{field.name: (value,) if of_many else value})


@pytest.mark.parametrize(
  'changes, message',
  [
    (
      {'min_local_epochs': 3, 'local_epochs': 2},
      '--min_local_epochs=3 must not exceed --local_epochs=2',
    ),
    ({'clients_per_round': 11}, '--clients_per_round=11 and --min_clients=1 '),
    ({'min_clients': 11}, 'must not exceed --num_clients=10'),
    (
      {'min_clients': 4, 'clients_per_round': 3},
      '--min_clients=4 must not exceed --clients_per_round=3',
    ),
  ],
)
def test_fields_that_contradict_each_other(changes, message):
  with pytest.raises(ValueError, match=message):
    federation.Config(**changes)


def test_at_the_bounds():
  federation.Config(
    clients_per_round=10, min_clients=10, min_local_epochs=1, num_clients=10,
    dropout_rate=0.0, validation_split=0.0, client_momentum=0.0,
  )  # fmt: skip


CHANGED = {
  'dataset': 'some where/my file.npz',
  'train_split': 'train[:10%]',
  'augment': True,
  'hidden_units': (200, 100),
  'decay_at': (),
  'client_parts': ('proximal', 'package.module:Part'),
  'client_learning_rate': 1e-05,
  'prior_scale': 1 / 3,
  'seed': 2**31 - 1,
  'server_step': ('momentum',),
}


@pytest.mark.parametrize('changes', [{}, CHANGED], ids=['defaults', 'changed'])
def test_flags_txt_is_a_flagfile_of_the_same_config(tmp_path, changes):
  config = federation.Config(**changes)
  path = tmp_path / 'flags.txt'
  path.write_text('\n'.join(records.flag_lines(config)))
  fields = flags.read_file(federation.Config, path)
  assert set(fields) == {field.name for field in FIELDS}
  assert federation.Config(**fields) == config
  assert federation.read_config(tmp_path) == config


def test_flags_txt_of_another_version(tmp_path):
  path = tmp_path / 'flags.txt'
  path.write_text('# bfl_tf 0.0.1\n--seed=3\n')
  assert federation.read_config(tmp_path) == federation.Config(seed=3)
  path.write_text('--seed=3\n--sead=4\n')
  with pytest.raises(ValueError, match='--sead is unknown to this version'):
    federation.read_config(tmp_path)


@pytest.mark.parametrize('path', PRESETS, ids=lambda path: path.stem)
def test_presets_parse_and_say_what_they_are(path):
  assert path.read_text().startswith('# ')
  federation.Config(**flags.read_file(federation.Config, path))


def test_defaults_belong_to_the_parts():
  defaults = {field.name: field.default for field in FIELDS}
  assert federation.Config() == federation.Config(**defaults)
  assert set(config_lib.MACHINE_FIELDS) <= set(defaults)


def test_a_things_arguments_are_bound_by_name():
  @dataclasses.dataclass(frozen=True)
  class Stage:
    """Takes one of its arguments from the config."""

    alpha: float
    other: int = 3

  config = federation.Config(alpha=0.125)
  assert federation.configured(Stage, config)() == Stage(0.125)


@pytest.mark.parametrize(
  'thing, name, value',
  [
    (models.build, 'kernel_initializer', 'glorot_uniform'),
    (models.build, 'extra_layers', 2),
    (training.Settings, 'augment_padding', 2),
  ],
)
def test_a_field_reaches_what_it_is_for(thing, name, value):
  config = federation.Config(**{name: value})
  assert federation.configured(thing, config).keywords[name] == value
  # Python's callers start from the same default.
  default = inspect.signature(thing).parameters[name].default
  assert getattr(federation.Config(), name) == default
