"""Tests of settings of methods: declaration, parsing and checks."""

import dataclasses
import functools
from typing import Annotated, Any

import numpy as np
import pytest

from bfl_tf.declare import settings
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


DECLARED = settings.of(Ours)
OTHERS = settings.of(anybodys)['others']


def test_an_argument_with_a_default_is_a_setting():
  assert set(DECLARED) == {'rate', 'sizes', 'kind'}
  assert DECLARED['sizes'].many and DECLARED['sizes'].kind is int
  assert {name: d.kind for name, d in settings.of(anybodys).items()} == {
    'strength': int, 'name': str, 'on': bool, 'others': str,
  }  # fmt: skip
  # Arguments that a partial binds are not settings.
  assert 'strength' not in settings.of(functools.partial(anybodys, strength=1))


@pytest.mark.parametrize(
  'declared, text, value',
  [
    (DECLARED['rate'], '0.25', 0.25),
    (DECLARED['sizes'], '3,4', (3, 4)),
    (DECLARED['sizes'], '', ()),
    (DECLARED['kind'], 'b', 'b'),
    (OTHERS, 'one', ('one',)),
    # An item of a list may have a comma.
    (OTHERS, '"a, kg",b', ('a, kg', 'b')),
    (OTHERS, '"say ""a""",b', ('say "a"', 'b')),
  ],
)
def test_values_are_parsed_from_text_and_formatted(declared, text, value):
  assert declared.parse('x', text) == declared.checked('x', value) == value
  assert declared.checked('x', text) == value
  assert declared.parse('x', declared.format(value)) == value


@pytest.mark.parametrize(
  'given, value', [(1, 1.0), (np.float32(0.5), 0.5), (np.int64(1), 1.0)]
)
def test_numbers_are_converted_to_the_type_of_the_setting(given, value):
  checked = settings.of(lambda x=0.5: x)['x'].checked('x', given)
  assert type(checked) is float and checked == value
  assert DECLARED['sizes'].checked('x', [1, 2]) == (1, 2)


def test_a_function_is_replaced_by_its_importable_name():
  assert OTHERS.checked('x', anybodys) == ('test_settings:anybodys',)
  # Code of a notebook cell has no file for a digest.
  typed = type('Typed', (), {'__module__': 'sys'})
  for thing in (lambda: 0, typed):
    with pytest.raises(ValueError, match='module'):
      OTHERS.checked('f', thing)


@pytest.mark.parametrize(
  'name, value',
  [
    ('rate', 1),
    ('rate', float('nan')),
    ('rate', 'half'),
    ('rate', True),
    ('sizes', (0,)),
    ('sizes', (2.5,)),
    ('sizes', '1,x'),
    ('sizes', (2**31,)),
    ('kind', 'c'),
  ],
)
def test_invalid_values_are_rejected_with_the_flag(name, value):
  with pytest.raises(ValueError, match='--f='):
    DECLARED[name].checked('f', value)
