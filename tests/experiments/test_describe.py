"""Tests of --help, --helpfull and --describe, and of their fast start."""

import io
import re
import subprocess
import sys

import pytest

from bfl_tf.config import catalog, config
from experiments import command_line, describe, reproduce, signatures


def printed(capsys, what, module=reproduce):
  with pytest.raises(SystemExit):
    describe.answer(['binary', what], module)
  return capsys.readouterr().out


def test_help_has_every_flag_and_setting(capsys):
  out = printed(capsys, '--helpfull')
  shown = re.findall(r'^  --([\w.]+)=', out, re.MULTILINE)
  assert {*shown} == {*config.FIELDS, *catalog.known_settings()}
  assert '\n  --artifact=' in printed(capsys, '--help')
  assert printed(capsys, '--describe=toys:Counter').startswith('Counter')


def test_the_contracts_page_is_current():
  assert signatures.PAGE.read_text('utf-8') == signatures.page()


def test_output_does_not_depend_on_the_terminals_encoding(monkeypatch):
  out = io.TextIOWrapper(io.BytesIO(), 'ascii')
  monkeypatch.setattr(sys, 'stdout', out)
  command_line.encodable()
  print('1 ± 2', flush=True)
  assert out.buffer.getvalue() == b'1 \\xb1 2\n'


_CODE = """
import sys, {}
from bfl_tf.config import catalog
assert catalog.known_settings()
slow = {{'tensorflow', 'tensorflow_probability', 'tf_keras'}}
assert not slow & sys.modules.keys()
"""


@pytest.mark.process
@pytest.mark.parametrize('module', ['experiments.run', 'experiments.sweep'])
def test_a_binary_is_imported_without_tensorflow(module):
  subprocess.run([sys.executable, '-c', _CODE.format(module)], check=True)
