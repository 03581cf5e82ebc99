"""What a method declares: read off its arguments, parsed, checked."""

import dataclasses
import functools
from typing import Annotated, Any

import numpy as np
import pytest

from bfl_tf import settings
from bfl_tf.config import config as config_lib
from bfl_tf.settings import Setting

METHODS = {f'{m.role}:{m.name}': m.thing for m in config_lib.known_methods()}


@dataclasses.dataclass(frozen=True)
class Ours:
  """Says what its settings are."""

  resource: Any
  rate: Annotated[float, Setting('A rate.', above=0, below=1)] = 0.5
  sizes: Annotated[tuple[int, ...], Setting('Sizes.', least=1)] = (3,)
  kind: Annotated[str, Setting('One of', choices=('a', 'b'))] = 'a'
  seed: int = 0
  table: Any = None


def anybodys(x, seed=1, *, strength=2, name='n', on=False, others=()):
  return x, seed, strength, name, on, others


DECLARED = settings.of(Ours, frozenset({'seed'}))


def test_an_argument_with_a_default_is_a_setting():
  assert set(DECLARED) == {'rate', 'sizes', 'kind'}
  assert DECLARED['sizes'].many and DECLARED['sizes'].kind is int
  found = settings.of(anybodys, frozenset({'seed'}))
  assert {name: d.kind for name, d in found.items()} == {
    'strength': int, 'name': str, 'on': bool, 'others': str,
  }  # fmt: skip


def test_what_a_run_gives_is_a_setting_only_where_it_says_so():
  assert 'rate' in settings.of(Ours, frozenset({'rate', 'seed'}))
  assert 'strength' not in settings.of(anybodys, frozenset({'strength'}))


def test_what_a_partial_has_bound_is_no_setting():
  assert 'strength' not in settings.of(functools.partial(anybodys, strength=1))


@pytest.mark.parametrize(
  'name, text, value',
  [
    ('rate', '0.25', 0.25),
    ('sizes', '3,4', (3, 4)),
    ('sizes', '', ()),
    ('kind', 'b', 'b'),
  ],
)
def test_text_is_a_value_and_back(name, text, value):
  declared = DECLARED[name]
  assert declared.parse('x', text) == declared.checked('x', value) == value
  assert declared.parse('x', declared.format(value)) == value


@pytest.mark.parametrize(
  'text, value',
  [
    ('a,b', ('a', 'b')),
    ('"a, kg",b', ('a, kg', 'b')),
    ('"say ""a""",b', ('say "a"', 'b')),
  ],
)
def test_an_item_of_a_list_may_have_a_comma(text, value):
  names = settings.of(anybodys)['others']
  assert names.parse('x', text) == value
  assert names.parse('x', names.format(value)) == value


@pytest.mark.parametrize(
  'given, value', [(1, 1.0), (np.float32(0.5), 0.5), (np.int64(1), 1.0)]
)
def test_a_number_takes_the_settings_type(given, value):
  checked = settings.of(lambda x=0.5: x)['x'].checked('x', given)
  assert type(checked) is float and checked == value


@pytest.mark.parametrize(
  'name, text, value', [('rate', '0.5', 0.5), ('sizes', '3,4', (3, 4))]
)
def test_a_text_in_python_is_what_a_flag_says(name, text, value):
  assert DECLARED[name].checked('f', text) == value


def test_a_function_is_taken_by_its_name():
  of_texts = settings.of(anybodys)['others']
  assert of_texts.checked('x', anybodys) == ('test_settings:anybodys',)
  assert of_texts.checked('x', [anybodys]) == ('test_settings:anybodys',)


def test_a_list_or_one_text_is_a_tuple():
  assert DECLARED['sizes'].checked('x', [1, 2]) == (1, 2)
  of_texts = settings.of(anybodys)['others']
  assert of_texts.checked('x', 'one') == ('one',)
  assert of_texts.checked('x', '') == ()


@pytest.mark.parametrize(
  'name, value, message',
  [
    ('rate', 0, '--f=0.0 must be above 0'),
    ('rate', 1, '--f=1.0 must be below 1'),
    ('rate', float('nan'), '--f=nan must be above 0'),
    ('rate', 'half', '--f=half must be a number'),
    ('sizes', ('3',), "--f='3' must be an integer"),
    ('kind', lambda: 0, '.*lambda.* has no name in a module'),
    ('rate', True, '--f=True must be a number'),
    ('sizes', (0,), '--f=0 must be at least 1'),
    ('sizes', 3, '--f=3 must be a list'),
    ('sizes', (2.5,), '--f=2.5 must be an integer'),
    ('sizes', (2**31,), r'--f=2147483648 must be below 2\^31'),
    ('kind', 'c', '--f=c is unknown. Choose one of a, b'),
  ],
)
def test_a_wrong_value_is_named(name, value, message):
  with pytest.raises(ValueError, match=f'^{message}'):
    DECLARED[name].checked('f', value)


@pytest.mark.parametrize('name, text', [('rate', 'x'), ('sizes', '1,x')])
def test_a_text_that_means_nothing_is_named(name, text):
  with pytest.raises(ValueError, match=f'^--f={text} must be a'):
    DECLARED[name].parse('f', text)


@pytest.mark.parametrize('method', METHODS)
def test_every_setting_of_ours_says_what_it_is(method):
  for name, declared in settings.of(METHODS[method], config_lib.GIVEN).items():
    assert len(declared.setting.help) >= 3, name
    numeric = declared.kind in (int, float)
    bounds = declared.setting.least, declared.setting.above
    assert not numeric or any(b is not None for b in bounds), name
    assert declared.checked(name, declared.default) == declared.default


@pytest.mark.parametrize('field', config_lib.FIELDS)
def test_every_field_says_what_it_is(field):
  declared = config_lib.FIELDS[field]
  assert len(declared.setting.help) > 4
  assert declared.kind in (str, bool) or declared.setting.least is not None or (
    declared.setting.above is not None
  )  # fmt: skip


def test_annotations_that_cannot_be_read_lose_no_bounds():
  def clip(limit: 'Annotated[Missing, Setting("x", above=0)]' = 1.0):  # noqa: F821
    return limit

  with pytest.raises(ValueError, match='clip: its annotations cannot be read'):
    settings.of(clip)

  def plain(limit: 'Missing' = 1.0):  # noqa: F821
    return limit

  assert set(settings.of(plain)) == {'limit'}


def test_a_setting_without_a_text_is_one():
  def thing(batch_size: Annotated[int, Setting(least=1)] = 7):
    return batch_size

  assert 'batch_size' in settings.of(thing, frozenset({'batch_size'}))


def test_a_made_method_checks_itself():
  settings.check(Ours(None, rate=0.1))
  with pytest.raises(ValueError, match=r'--Ours\.rate=2\.0 must be below 1'):
    settings.check(Ours(None, rate=2))


def test_a_text_is_one_line():
  with pytest.raises(ValueError, match=r"--name='a\\nb' must be one line"):
    settings.of(anybodys)['name'].checked('name', 'a\nb')
  with pytest.raises(ValueError, match='must be one line'):
    settings.of(anybodys)['others'].checked('others', ('a', 'b\nc'))
  with pytest.raises(ValueError, match='must be one line'):
    settings.of(anybodys)['name'].checked('name', 'a\n')
  assert settings.of(anybodys)['name'].checked('name', '') == ''
