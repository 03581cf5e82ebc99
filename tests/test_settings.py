"""Tests of settings of methods and of user-supplied code."""

import dataclasses
import functools
from typing import Annotated, Any

import numpy as np
import pytest

from bfl_tf.declare import registry, settings, user_code
from bfl_tf.declare.settings import Setting, setting


@dataclasses.dataclass(frozen=True)
class Ours:
  """A method with declared settings."""

  resource: Any
  rate: float = setting(0.5, 'A rate.', gt=0, lt=1)
  sizes: tuple[int, ...] = setting((3,), 'Sizes.', ge=1)
  # The form of a function's argument.
  kind: Annotated[str, Setting('One of', choices=('a', 'b'))] = 'a'
  table: Any = None


def anybodys(x, *, strength=2, name='n', on=False, others=()):
  return x, strength, name, on, others


RATE, SIZES, KIND = settings.of(Ours).values()
OTHERS = settings.of(anybodys)['others']


def test_an_argument_with_a_default_is_a_setting():
  assert [*settings.of(Ours)] == ['rate', 'sizes', 'kind']
  assert SIZES.many and SIZES.kind is int
  assert {name: d.kind for name, d in settings.of(anybodys).items()} == {
    'strength': int, 'name': str, 'on': bool, 'others': str,
  }  # fmt: skip
  # Arguments that a partial binds are not settings.
  assert 'strength' not in settings.of(functools.partial(anybodys, strength=1))


@pytest.mark.parametrize(
  'declared, text, value',
  [
    (RATE, '0.25', 0.25),
    (SIZES, '3,4', (3, 4)),
    (SIZES, '', ()),
    (KIND, 'b', 'b'),
    (OTHERS, 'one', ('one',)),
    # An item of a list may have a comma.
    (OTHERS, '"a, kg",b', ('a, kg', 'b')),
    (OTHERS, '"say ""a""",b', ('say "a"', 'b')),
  ],
)
def test_values_are_parsed_from_text_and_formatted(declared, text, value):
  assert declared.checked('x', text) == declared.checked('x', value) == value
  assert declared.parse('x', declared.format(value)) == value


@pytest.mark.parametrize(
  'declared, given, value',
  [
    (settings.of(lambda x=0.5: x)['x'], 1, 1.0),
    (RATE, np.float32(0.5), 0.5),
    (SIZES, [1, np.int64(2)], (1, 2)),
    # A function is replaced by its importable name.
    (OTHERS, anybodys, (f'{__name__}:anybodys',)),
  ],
)
def test_values_are_converted_to_the_type_of_the_setting(
  declared, given, value
):
  # An integer equals a float, but has another representation.
  assert repr(declared.checked('x', given)) == repr(value)


@pytest.mark.parametrize(
  'declared, value',
  [
    (RATE, 1),
    (RATE, float('nan')),
    (RATE, 'half'),
    (RATE, True),
    (SIZES, (0,)),
    (SIZES, (2.5,)),
    (SIZES, '1,x'),
    (SIZES, (2**31,)),
    (KIND, 'c'),
  ],
)
def test_invalid_values_are_rejected_with_the_flag(declared, value):
  with pytest.raises(ValueError, match='--f='):
    declared.checked('f', value)


def test_code_without_a_file_for_a_digest_is_rejected():
  typed = [type('Typed', (), {'__module__': m}) for m in ('sys', 'no_such')]
  for thing in (lambda: 0, *typed):
    with pytest.raises(ValueError, match='module'):
      OTHERS.checked('f', thing)


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
