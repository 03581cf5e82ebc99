"""What the binaries say of themselves; and a part of anybody's in full."""

import functools
import io
import os
import re
import subprocess
import sys

import binaries
import pytest

from bfl_tf.config import config
from experiments import benchmark, describe, flags, reproduce

pytestmark = pytest.mark.process

# As anybody would write it, outside of the package: two settings, one method.
CLIP = """\
import dataclasses
from typing import Annotated, ClassVar

import tensorflow as tf

from bfl_tf.settings import Setting


@dataclasses.dataclass(frozen=True)
class Clip:
  \"\"\"Keeps the gradient short in the first steps.\"\"\"

  norm: Annotated[float, Setting('Of a gradient, at most.', above=0)] = 1.0
  steps: Annotated[int, Setting('How many.', least=1)] = 100
  name: ClassVar[str] = 'clip'
  needs: ClassVar[str | None] = None

  def gradient(self, gradient, mean, carry, step):
    clipped = tf.clip_by_norm(gradient, self.norm)
    return tf.where(step.index < self.steps, clipped, gradient)
"""
_SMALL = [
  '--variant=deterministic', '--model=logistic', '--client_optimizer=sgd',
  '--num_clients=2', '--num_rounds=1', '--client_learning_rate=1',
]  # fmt: skip


@pytest.fixture(scope='module')
def said(tmp_path_factory):
  """What `experiments.run` says to each line of arguments; one process."""
  folder = tmp_path_factory.mktemp('own')
  (folder / 'mine.py').write_text(CLIP)
  own = [*_SMALL, '--client_parts=mine:Clip']
  lines = {
    'help': ['--help'],
    'helpfull': ['--helpfull'],
    'helpshort': ['--helpshort'],
    'own': ['--describe=mine:Clip'],
    'unknown': ['--describe=wcc'],
    'out of bounds': [*own, '--Clip.norm=0', f'--output_dir={folder}/no'],
    'misspelt': [*own, '--Clip.nrom=1', f'--output_dir={folder}/no'],
    'short': [*own, '--Clip.norm=1e-9', f'--output_dir={folder}/short'],
    'none': [*own, '--Clip.norm=1e-9', '--Clip.steps=1',
             f'--output_dir={folder}/none'],
  }  # fmt: skip
  outcomes = binaries.drive('experiments.run', list(lines.values()), folder)
  return folder, dict(zip(lines, outcomes, strict=True))


def test_help_is_short_and_names_every_choice(said):
  code, out, error = said[1]['help']
  assert (code, error) == (0, '')
  assert out.count('\n') < 50
  assert 'python -m experiments.run --flagfile=' in out
  for role in config.ROLES:
    assert f'\n  --{role}=' in out
    for name in config.FIELDS[role].setting.table:
      assert re.search(rf'\b{re.escape(name)}[,.]', out), name
  for more in ('--describe=NAME', '--helpfull', '--flagfile=FILE'):
    assert more in out


def test_helpshort_is_help(said):
  assert said[1]['helpshort'] == said[1]['help']


def test_helpfull_has_every_flag_with_its_default(said):
  code, out, error = said[1]['helpfull']
  assert (code, error) == (0, '')
  expected = dict(config.FIELDS)
  for method in config.known_methods():
    for setting, declared in method.declared.items():
      expected[f'{method.name}.{setting}'] = declared
  shown = dict(re.findall(r'^  --([\w.]+)=(.*)$', out, re.MULTILINE))
  assert shown.keys() == expected.keys()
  for name, declared in expected.items():
    assert shown[name] == declared.format(declared.default)


def asked(capsys, what, module=reproduce):
  with pytest.raises(SystemExit) as stopped:
    describe.answer(['binary', what], module)
  assert stopped.value.code == 0
  return capsys.readouterr().out


def test_one_method_with_its_source_and_settings(capsys):
  out = asked(capsys, '--describe=distil')
  assert out.startswith('distil (--server_step=distil, --refine=distil)\n')
  assert 'FedBE' in out and 'ICLR 2020' not in out
  assert '  --distil.epochs=20\n      Over the server' in out
  assert 'It has no settings.' in asked(capsys, '--describe=recalibrate')


def test_every_method_of_ours_can_be_described(capsys):
  for method in config.known_methods():
    out = asked(capsys, f'--describe={method.name}')
    for setting in method.declared:
      assert f'  --{method.key(setting)}=' in out


@pytest.mark.parametrize(
  'module, flag',
  [(reproduce, 'artifact'), (benchmark, 'case')],
)
def test_other_binaries_show_their_own_flags(capsys, module, flag):
  out = asked(capsys, '--help', module)
  assert out.startswith(module.__doc__.partition('\n')[0])
  assert f'--{flag}: ' in out and '--pooling' not in out
  ask = functools.partial(asked, capsys, module=module)
  assert ask('--describe=momentum').startswith('momentum (--server_step=')


def test_a_name_that_nobody_knows(said):
  code, _, error = said[1]['unknown']
  assert code == 2 and error.startswith('error: --describe=wcc is unknown')
  assert error.count('\n') == 1


def test_a_part_with_two_settings_needs_so_many_lines():
  lines = [line for line in CLIP.splitlines() if line.strip()]
  assert len(lines) == 14


def test_anybodys_own_is_described(said):
  code, out, _ = said[1]['own']
  assert code == 0
  assert out.startswith('Clip\n  Keeps the gradient short in the first steps.')
  assert '  --Clip.norm=1.0\n      Of a gradient, at most.\n' in out
  assert '  --Clip.steps=100\n' in out


def test_anybodys_own_is_set(said):
  folder, outcomes = said
  losses = {}
  for name in ('short', 'none'):
    code, out, error = outcomes[name]
    assert code == 0, error
    flags = (folder / name / 'flags.txt').read_text()
    assert '--Clip.norm=1e-09\n' in flags
    losses[name] = float(re.search(r'likelihood \(nats\) +([\d.]+)', out)[1])
  # Steps of 1e-9 leave the untrained model; one such step of many does not.
  assert losses['short'] > 1.5 > losses['none']


@pytest.mark.parametrize(
  'name, message',
  [
    ('out of bounds', '--Clip.norm=0.0 must be above 0.'),
    ('misspelt', '--Clip.nrom is unknown. Did you mean --Clip.norm?'),
  ],
)
def test_anybodys_own_is_refused_in_one_line(said, name, message):
  code, _, error = said[1][name]
  assert code == 2 and error.startswith(f'error: {message}')
  assert error.count('\n') == 1


def test_ends_without_a_word_where_nobody_reads():
  reader, writer = os.pipe()
  os.close(reader)
  process = subprocess.run(
    [sys.executable, '-m', 'experiments.run', '--helpfull'],
    cwd=binaries.ROOT,
    env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '3'},
    stdout=writer,
    stderr=subprocess.PIPE,
    text=True,
  )
  os.close(writer)
  assert process.returncode == 141, process.stderr
  assert 'BrokenPipe' not in process.stderr


def test_another_pipes_end_is_not_the_readers(monkeypatch):
  reader, writer = os.pipe()
  with open(writer, 'w') as out:
    monkeypatch.setattr(sys, 'stdout', out)
    assert flags._is_read()
    os.close(reader)
    assert not flags._is_read()
  for nothing in (None, io.StringIO()):
    monkeypatch.setattr(sys, 'stdout', nothing)
    assert flags._is_read()
