"""Tests of --help, --helpfull and --describe."""

import io
import re
import sys

import binaries
import pytest

from bfl_tf.config import catalog, config
from experiments import command_line, describe, reproduce, signatures


def printed(capsys, what):
  with pytest.raises(SystemExit):
    describe.answer(['binary', what], reproduce)
  return capsys.readouterr().out


@pytest.mark.process
def test_help_has_every_flag():
  code, out, error = binaries.run('experiments.run', '--help')
  assert (code, error) == (0, '')
  assert not [name for name in config.FIELDS if f'\n  --{name}=' not in out]


def test_helpfull_has_every_setting_and_a_custom_class_is_described(capsys):
  out = printed(capsys, '--helpfull')
  shown = re.findall(r'^  --([\w.]+)=', out, re.MULTILINE)
  assert {*shown} == {*config.FIELDS, *catalog.known_settings()}
  assert printed(capsys, '--describe=toys:Counter').startswith('Counter')


def test_the_contracts_page_is_current():
  assert signatures.PAGE.read_text('utf-8') == signatures.page()


def test_output_does_not_depend_on_the_terminals_encoding(monkeypatch):
  out = io.TextIOWrapper(io.BytesIO(), 'ascii')
  monkeypatch.setattr(sys, 'stdout', out)
  command_line.encodable()
  print('1 ± 2', flush=True)
  assert out.buffer.getvalue() == b'1 \\xb1 2\n'
