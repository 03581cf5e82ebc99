"""Tests of names of user-supplied code, and of its errors."""

import pytest

from bfl_tf.declare import registry, user_code


@pytest.mark.parametrize('name', ['zzz', '', 'no_such:x', 'math:cube', ':sqrt'])
def test_unknown_names_are_rejected(name):
  with pytest.raises(ValueError, match=f'--pooling={name}'):
    registry.resolve('pooling', name, {'ws': 1})


def test_exceptions_in_user_supplied_code_are_chained(tmp_path, monkeypatch):
  module = tmp_path / 'code_that_divides.py'
  module.write_text('def f(x):\n  return 1 / x\n')
  monkeypatch.syspath_prepend(tmp_path)
  function = registry.resolve('dataset', 'code_that_divides:f', {})
  flag = '--dataset=code_that_divides:f'
  assert user_code.call(flag, function, 2) == 0.5
  with pytest.raises(user_code.RaisedError, match=flag) as raised:
    user_code.call(flag, function, 0)
  cause = raised.value.__cause__
  assert isinstance(cause, ZeroDivisionError)
  assert cause.__traceback__.tb_next.tb_frame.f_code.co_filename == str(module)
