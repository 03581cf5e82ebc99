"""Names of ours, names of anybody's, and what a wrong one is told."""

import math
import re
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


@pytest.mark.parametrize(
  'name, message',
  [
    (
      'conflaton',
      "--pooling=conflaton is unknown. Did you mean 'conflation'? Choose one "
      'of conflation, nwa, ws, or package.module:name.',
    ),
    (
      'zzz',
      '--pooling=zzz is unknown. Choose one of conflation, nwa, ws, or '
      'package.module:name.',
    ),
    ('', '--pooling= is unknown. Choose one of'),
    ('math', '--pooling=math is unknown.'),
    (
      'no_such:x',
      "--pooling=no_such:x cannot be imported: No module named 'no_",
    ),
    (
      'math:cube',
      "--pooling=math:cube cannot be imported: module 'math' has no",
    ),
    ('math:', '--pooling=math: cannot be imported: '),
    (':sqrt', '--pooling=:sqrt cannot be imported: '),
    ('.rules:Median', '--pooling=.rules:Median cannot be imported: '),
  ],
)
def test_nothing_goes_by_that_name(name, message):
  with pytest.raises(ValueError, match=f'^{re.escape(message)}'):
    registry.resolve('pooling', name, TABLE)


def test_what_cannot_be_called_is_refused():
  message = '--pooling=math:pi is of type float: a class or a function is want'
  with pytest.raises(ValueError, match=message):
    registry.resolve('pooling', 'math:pi', {})
