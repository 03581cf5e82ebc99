"""What the binaries say of themselves; and a part of anybody's in full."""

import functools
import os
import re
import subprocess
import sys

import binaries
import pytest

from bfl_tf.config import config
from experiments import benchmark, describe, reproduce

CLIP = """\
import dataclasses
from typing import Annotated

from bfl_tf.settings import Setting


@dataclasses.dataclass(frozen=True)
class Clip:
  \"\"\"Keeps the gradient short in the first steps.\"\"\"

  norm: Annotated[float, Setting('Of a gradient, at most.', above=0)] = 1.0
  steps: Annotated[int, Setting('How many.', least=1)] = 100
"""


@pytest.fixture(scope='module')
def said():
  """What `experiments.run` says to each word; one process."""
  words = ('help', 'helpfull', 'helpshort')
  outcomes = binaries.drive('experiments.run', [[f'--{w}'] for w in words])
  return dict(zip(words, outcomes, strict=True))


@pytest.mark.process
def test_help_is_short_and_names_every_choice(said):
  code, out, error = said['help']
  assert (code, error) == (0, '')
  assert out.count('\n') < 50
  assert 'python -m experiments.run --flagfile=' in out
  for role in config.ROLES:
    assert f'\n  --{role}=' in out
    for name in config.FIELDS[role].setting.table:
      assert re.search(rf'\b{re.escape(name)}[,.]', out), name
  for more in ('--describe=NAME', '--helpfull', '--flagfile=FILE'):
    assert more in out


@pytest.mark.process
def test_helpfull_has_every_flag_with_its_default(said):
  code, out, error = said['helpfull']
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


def test_anybodys_own_is_described(capsys, tmp_path, monkeypatch):
  (tmp_path / 'own_clip.py').write_text(CLIP)
  monkeypatch.syspath_prepend(tmp_path)
  out = asked(capsys, '--describe=own_clip:Clip')
  assert out.startswith('Clip\n  Keeps the gradient short in the first steps.')
  assert '  --Clip.norm=1.0\n      Of a gradient, at most.\n' in out
  assert '  --Clip.steps=100\n' in out


@pytest.mark.process
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
