"""What a user got wrong is one line and code 2, and nothing is written.

Each line below is what somebody types; its first flag is the one that the error
must name. What is wrong with a flag's value is tested where it is checked: here
is one of each kind, and things of one's own in every role.
"""

import pathlib

import binaries
import hypothesis
from hypothesis import strategies
import own_things
import pytest

from bfl_tf import config as config_lib
from bfl_tf.config import config as fields

REFUSED = """
--num_rounds=0
--num_rounds=many
--num_round=3
--hidden_units=3
--seed=-1
--flipout.temperature=-1
--dirichlet.alpha=nan --partition=dirichlet
--dirichlet.alpha=0.5
--mlp.hidden_units=a,b --model=mlp
--mlp.hidden_unit=3 --model=mlp
--alpha=0.5 --partition=dirichlet
--proximal.weight=1
--fine_tune.epochs=many --start=fine_tune
--describe=distill
--dataset=no_such_set
--dataset=missing.npz
--dataset=missing.csv
--dataset=os:getcwd
--dataset={tmp}/text.npz
--dataset={tmp}/sites.csv --label_column=kind
--train_split=train[:9]
--client_column=site
--augment --dataset=wine
--partition=natural
--partition=natural --dataset={tmp}/sites.csv --client_column=site
--partition=rings
--num_clients=5000
--num_clients=3 --dataset=digits --partition=class_split
--num_server_examples=5000
--num_server_examples=9 --server_fraction=0.1
--model=lenet
--model=resnet21
--model=convnet --dataset=wine
--model=no.module:f
--variant=bayes
--pooling=wc --variant=deterministic
--weighting=distance --pooling=conflation --variant=flipout
--client_parts=fedprox
--client_parts=proximal,proximal
--server_step=sign_threshold --sign_threshold.threshold=3
--refine=fine_tune
--server_dataset=digits --refine=fine_tune
--min_clients=11
--clients_per_round=11
--min_local_epochs=2
--flagfile=no.flags
--output_dir=
--output_dir={tmp}/text.npz
--output_dir={tmp}/text.npz/below
--output_dir={tmp}/foreign
--partition=own_things:five
--partition=own_things:shared
--partition=own_things:outside
--partition=own_things:empty
--partition=own_things:twice
--partition=own_things:fractions
--partition=own_things:raising
--partition=own_things:by_hospital
--partition=own_things:by_id
--variant=flipout --model=own_things:dense
--pooling=own_things:Average --model=own_things:dense
--model=own_things:softmax
--model=own_things:rank_three
--model=own_things:seven
--model=own_things:two
--model=own_things:unbuilt
--model=own_things:keras_three
--model=own_things:forgotten
--pooling=own_things:NoTerms --variant=flipout
--pooling=own_things:Nothing
--weighting=own_things:Nothing
--server_step=own_things:NoCall
--client_parts=own_things:NoName
--client_parts=own_things:NamedByNumber
--client_parts=own_things:Needy
--dataset=own_things:reading
--dataset=own_things:from_folder
--dataset=own_things:one_class
"""
# Noticed only while it trains: code 1, and the state is saved.
STOPPED = """
--client_learning_rate=1e38
--pooling=own_things:NoMean --variant=flipout
--pooling=own_things:Negative --variant=flipout
--weighting=own_things:Zero
--weighting=own_things:NotANumber
--weighting=own_things:TooFew
--server_step=own_things:Exploding
--server_step=own_things:NoState
--server_step=own_things:Raising
--client_parts=own_things:BadLoss
"""
TAKEN = """
--dataset=own_things:one_hot
--dataset=own_things:rare
--partition=own_things:by_rows --validation_split=0.2
"""
_SMALL = [
  '--num_rounds=1', '--num_clients=2', '--num_workers=1',
  '--variant=deterministic', '--model=logistic', '--dataset=own_things:data',
]  # fmt: skip
_FOLDER = pathlib.Path(__file__).parent


@pytest.fixture(scope='module')
def tmp(tmp_path_factory):
  folder = tmp_path_factory.mktemp('bad')
  (folder / 'text.npz').write_text('no archive')
  lines = [f'{i}.5,{"abc"[i % 3]},{i % 3}' for i in range(30)]
  (folder / 'sites.csv').write_text('\n'.join(['a,site,label', *lines, '']))
  (folder / 'foreign').mkdir()
  (folder / 'foreign' / 'thesis.tex').write_text('precious')
  return folder


def _rows(text):
  return text.strip().splitlines()


def _snapshot(folder):
  return {(path, path.stat().st_mtime_ns) for path in folder.rglob('*')}


def _is_named(row, line):
  """Whether an error names the flag of a row, or its value."""
  flag, _, value = row.split()[0].partition('=')
  name = value.rpartition(':')[2] or flag
  return flag.lstrip('-') in line or name.lower() in line.lower()


@pytest.mark.process
def test_what_is_wrong_is_one_line_that_names_the_flag(tmp):
  refused, stopped, taken = map(_rows, (REFUSED, STOPPED, TAKEN))
  lines = [
    [*_SMALL, f'--output_dir={tmp}/new{number}', *row.format(tmp=tmp).split()]
    for number, row in enumerate([*refused, *stopped, *taken])
  ]
  before = _snapshot(tmp)
  said = iter(binaries.drive('experiments.run', lines, _FOLDER))
  wrong = []
  for row, (code, out, error) in zip(refused, said):
    # Above it may be the traceback of what was raised in a thing of one's own.
    *above, line = error.splitlines()
    ours = line.startswith('error: ') and (not above or 'own_things' in row)
    if code != 2 or not ours or out or not _is_named(row, line):
      wrong.append((row, code, out, error))
  for row, (code, _, error) in zip(stopped, said):
    ours = [line for line in error.splitlines() if line.startswith('error: ')]
    if code != 1 or len(ours) != 1:
      wrong.append((row, code, error))
  wrong += [(row, *each) for row, each in zip(taken, said) if each[0]]
  assert not wrong, '\n'.join(map(str, wrong))
  new = {path.relative_to(tmp).parts[0] for path, _ in _snapshot(tmp) - before}
  played = [f'new{len(refused) + i}' for i in range(len(stopped + taken))]
  assert new == {*played}
  for name in played[: len(stopped)]:
    assert (tmp / name / 'checkpoints' / 'state-0.index').exists()
    assert not (tmp / name / 'summary.json').exists()


@pytest.mark.parametrize(
  ('named', 'given'),
  [
    ('hidden_units', {'hidden_units': [32, 32]}),
    ('num_rounds', {'num_rounds': 'three'}),
    ('lambda', {'partition': lambda labels: [labels]}),
    ('num_round', {'num_round': 3}),
  ],
)
def test_in_python(named, given):
  with pytest.raises(ValueError, match=named):
    config_lib.Config(**given)


def test_in_python_values_may_be_texts_and_things():
  config = config_lib.Config(
    num_rounds='3', client_parts='proximal', partition=own_things.five
  )
  assert (config.num_rounds, config.client_parts) == (3, ('proximal',))
  assert config.partition == 'own_things:five'


@hypothesis.settings(max_examples=300)
@hypothesis.given(
  strategies.sampled_from([*fields.FIELDS, *fields.known_settings()]),
  strategies.one_of(
    strategies.text(max_size=5),
    strategies.integers().map(str),
    strategies.floats().map(str),
    strategies.sampled_from(['os:getcwd', 'json:loads', 'math:pi', 'a,,b']),
  ),
)
def test_any_text_for_a_flag_is_taken_or_refused_by_its_name(name, text):
  try:
    config_lib.Config.of({name: text}, typed=[name])
  except ValueError as error:
    leaf = name.rpartition('.')[2]
    assert leaf in str(error)
