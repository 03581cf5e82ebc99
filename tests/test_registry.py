"""Names of ours, names of anybody's, and what a wrong one is told."""

import math
import sys

import pytest

from bfl_tf import registry

TABLE = {'ws': 1, 'nwa': 2, 'conflation': None}


def test_our_own():
  assert registry.resolve('pooling', 'ws', TABLE) == 1
  # A falsy entry is an entry.
  assert registry.resolve('pooling', 'conflation', TABLE) is None


def test_anybodys():
  assert registry.resolve('pooling', 'math:sqrt', TABLE) is math.sqrt
  assert registry.resolve('model', 'os.path:join', {}).__name__ == 'join'


def test_a_users_module_on_the_path(tmp_path, monkeypatch):
  (tmp_path / 'users_rules.py').write_text('class Median:\n  pass\n')
  monkeypatch.syspath_prepend(tmp_path)
  assert registry.resolve('pooling', 'users_rules:Median', TABLE).__name__ == (
    'Median'
  )
  monkeypatch.delitem(sys.modules, 'users_rules')


def test_an_entry_with_a_colon_is_ours():
  assert registry.resolve('pooling', 'math:sqrt', {'math:sqrt': 3}) == 3


def test_nothing_goes_by_that_name():
  for name in (
    'zzz', '', 'math', 'no_such:x', 'math:cube', 'math:', ':sqrt', 'math:pi',
  ):  # fmt: skip
    with pytest.raises(ValueError, match=f'^--pooling={name}'):
      registry.resolve('pooling', name, TABLE)
  with pytest.raises(ValueError, match="Did you mean 'conflation'"):
    registry.resolve('pooling', 'conflaton', TABLE)
