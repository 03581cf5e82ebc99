"""Tests of the registry: built-in names and user-supplied code."""

import importlib
import math
import sys

import pytest

from bfl_tf.declare import registry, user_code

TABLE = {'ws': 1, 'nwa': 2, 'conflation': None}


def test_names_of_the_table_and_of_user_supplied_code_are_resolved():
  assert registry.resolve('pooling', 'ws', TABLE) == 1
  # An entry may be None.
  assert registry.resolve('pooling', 'conflation', TABLE) is None
  assert registry.resolve('pooling', 'math:sqrt', TABLE) is math.sqrt


@pytest.mark.parametrize(
  'name',
  ['zzz', '', 'no_such:x', 'math:cube', 'math:', ':sqrt'],
)
def test_unknown_names_are_rejected(name):
  with pytest.raises(ValueError, match=f'--pooling={name}'):
    registry.resolve('pooling', name, TABLE)


@pytest.fixture
def module(tmp_path, monkeypatch):
  """Path of a user module that can be imported by its name."""
  monkeypatch.syspath_prepend(tmp_path)
  return tmp_path / f'{tmp_path.name}.py'


def test_exceptions_in_user_supplied_code_are_chained(module):
  module.write_text('def f(x):\n  return 1 / x\nclass C: pass\n')
  name = f'{module.stem}:f'
  function = registry.resolve('dataset', name, {})
  assert user_code.call(f'--dataset={name}', function, 2) == 0.5
  with pytest.raises(
    user_code.RaisedError, match=f'--dataset={name}'
  ) as raised:
    user_code.call(f'--dataset={name}', function, 0)
  cause = raised.value.__cause__
  assert isinstance(cause, ZeroDivisionError)
  assert cause.__traceback__.tb_next.tb_frame.f_code.co_filename == str(module)


def test_the_digest_is_of_the_imported_version_of_the_file(module):
  module.write_text('def f(): return 1')
  name = f'{module.stem}:f'
  registry.resolve('model', name, {})
  module.write_text('def f(): return 1 + 1')
  first = user_code.digest(name)
  importlib.reload(sys.modules[module.stem])
  second = user_code.digest(name)
  assert None is not first != second == user_code.digest_of(module)
  assert user_code.digest('no_such:f') is None
