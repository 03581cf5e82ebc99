"""Tests of user errors: one line, code 2, and no written files.

Each line below is a command line; the error must name its first flag. There is
one example of each kind of wrong value, and user-supplied code in every role.
Other tests check the values of single flags.
"""

import pathlib

import binaries
import hypothesis
from hypothesis import strategies
import pytest

from bfl_tf.config import catalog, config

REFUSED = """
--num_rounds=0
--num_rounds=many
--num_round=3
--mlp.hidden_units=a,b --model=mlp
--dirichlet.alpha=0.5
--describe=distill
--dataset=no_such_set
--dataset={tmp}/text.npz
--augment --dataset=wine
--partition=natural
--model=convnet --dataset=wine
--pooling=wc --variant=deterministic
--server_parts=fine_tune
--flagfile=no.flags
--flagfile={tmp}
--flagfile={tmp}/latin.flags
--augment=maybe
--output_dir=
--output_dir={tmp}/text.npz/below
--output_dir={tmp}/foreign
--overwite
--validation_split=0.99 --dataset=digits --num_clients=40
--central.noise_multiplier=1e300 --privacy=central
--client_timeout=nan
--partition=own_things:half
--partition=own_things:raising
--partition=own_things_quit:any
--model=own_things:softmax
--model=own_things:seven
--pooling=own_things:Nothing
--client_parts=own_things:NoName
--client_parts=own_things:IntMemory
--client_parts=own_things:Quitting
--client_parts=own_things:BadGradient
--schedule=own_things:Falling
--dataset=own_things:reading
"""
# These errors occur in training: code 1, and the state is saved.
STOPPED = """
--client_learning_rate=1e38
--pooling=own_things:NoMean --variant=flipout
--pooling=own_things:OneMean --variant=flipout
--pooling=own_things:Named --variant=flipout
--weighting=own_things:Zero
--server_parts=own_things:Raising
--server_parts=own_things:Accurate
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
  (folder / 'latin.flags').write_bytes(b'\xff')
  (folder / 'foreign').mkdir()
  (folder / 'foreign' / 'thesis.tex').write_text('precious')
  return folder


def _is_named(row, line):
  flag, _, value = row.split()[0].partition('=')
  name = value.rpartition(':')[2] or flag
  return flag.lstrip('-') in line or name.lower() in line.lower()


@pytest.mark.process
def test_invalid_flags_give_a_one_line_error_that_names_the_flag(tmp):
  refused, stopped = (text.strip().splitlines() for text in (REFUSED, STOPPED))
  lines = [
    [*_SMALL, f'--output_dir={tmp}/new{number}', *row.format(tmp=tmp).split()]
    for number, row in enumerate([*refused, *stopped])
  ]
  before = {*tmp.rglob('*')}
  outcomes = iter(binaries.drive('experiments.run', lines, _FOLDER))
  wrong = []
  for row, (code, out, error) in zip(refused, outcomes):
    # A traceback from user code may come before the line.
    *above, line = error.splitlines()
    ours = line.startswith('error: ') and (not above or 'own_things' in row)
    if code != 2 or not ours or out or not _is_named(row, line):
      wrong.append((row, code, out, error))
  for row, (code, _, error) in zip(stopped, outcomes):
    if code != 1 or error.count('\nerror: ') + error.startswith('error: ') != 1:
      wrong.append((row, code, error))
  assert not wrong, '\n'.join(map(str, wrong))
  new = {path.relative_to(tmp).parts[0] for path in {*tmp.rglob('*')} - before}
  assert new == {f'new{len(refused) + i}' for i in range(len(stopped))}
  for name in new:
    assert (tmp / name / 'checkpoint.npz').exists()
    assert not (tmp / name / 'summary.json').exists()


@hypothesis.settings(max_examples=150)
@hypothesis.given(
  strategies.sampled_from([*config.FIELDS, *catalog.known_settings()]),
  strategies.one_of(
    strategies.text(max_size=5),
    strategies.integers().map(str),
    strategies.floats().map(str),
    strategies.sampled_from(['os:getcwd', 'json:loads', 'math:pi', 'a,,b']),
  ),
)
def test_any_text_is_accepted_or_rejected_with_the_name_of_its_flag(name, text):
  try:
    config.Config.of({name: text}, typed=[name])
  except ValueError as error:
    leaf = name.rpartition('.')[2]
    assert leaf in str(error)
