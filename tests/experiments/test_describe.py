"""Tests of --help, --helpfull and --describe."""

import io
import re
import sys

import binaries
import pytest

from bfl_tf.config import catalog, config
from experiments import command_line, describe, reproduce, signatures


def printed(capsys, what):
  with pytest.raises(SystemExit) as stopped:
    describe.answer(['binary', what], reproduce)
  assert stopped.value.code == 0
  return capsys.readouterr().out


@pytest.mark.process
def test_help_has_every_group_flag_and_choice():
  code, out, error = binaries.run('experiments.run', '--help')
  assert (code, error) == (0, '')
  for group in config.GROUPS:
    assert f'\n{group.__doc__.rstrip(".")}:\n' in out
  for name in config.FIELDS:
    assert f'\n  --{name}=' in out
  for role in config.ROLES:
    for name in config.FIELDS[role].setting.table:
      assert re.search(rf'\b{re.escape(name)}[,.]', out), name


def test_helpfull_has_every_flag_with_its_default(capsys):
  expected = dict(config.FIELDS)
  for method in catalog.known_methods():
    for setting, spec in method.specs.items():
      expected[f'{method.name}.{setting}'] = spec
  out = printed(capsys, '--helpfull')
  shown = dict(re.findall(r'^  --([\w.]+)=(.*)$', out, re.MULTILINE))
  assert shown.keys() == expected.keys()
  for name, spec in expected.items():
    default = spec.format(spec.default)
    assert shown[name].startswith(default)
    assert shown[name][len(default) :][:2] in ('', '  ')


def test_a_custom_class_is_described(capsys):
  out = printed(capsys, '--describe=toys:Counter')
  assert out.startswith('Counter') and 'It has no settings.' in out


def test_the_contracts_page_is_current():
  assert signatures.PAGE.read_text('utf-8') == signatures.page()


def test_output_does_not_depend_on_the_terminals_encoding(monkeypatch):
  out = io.TextIOWrapper(io.BytesIO(), 'ascii')
  monkeypatch.setattr(sys, 'stdout', out)
  command_line.encodable()
  print('1 ± 2', flush=True)
  assert out.buffer.getvalue() == b'1 \\xb1 2\n'
