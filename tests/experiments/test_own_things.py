"""docs/nothing_silent.md is true: what is typed there says what it says there.

What is wrong before anything is written is code 2; while a run goes on it is
code 1 and the state is saved.
"""

import html
import pathlib
import re

import binaries
import own_things
import pytest

import bfl_tf

pytestmark = pytest.mark.process

_FOLDER = pathlib.Path(__file__).parent
_PAGE = _FOLDER.parents[1] / 'docs' / 'nothing_silent.md'
_ROW = re.compile(r'\| `(.+?)` \| .+ \| (.+) \|')


def _rows(title):
  """Returns by what is typed what is said now, of a section's tables."""
  text = html.unescape(_PAGE.read_text()).replace(r'\|', '\0')
  section = re.search(rf'\n## {title}.*?(?=\n## |\Z)', text, re.DOTALL)[0]
  found = _ROW.findall(section.replace('| typed |', ''))
  return {typed: now.replace('\0', '|') for typed, now in found}


REFUSED, STOPPED = _rows('Refused'), _rows('Stopped')
TAKEN, PYTHON = _rows('Taken'), _rows('In Python')


def _pattern(now):
  return '.*'.join(map(re.escape, now.split('…')))


def _placed(text):
  """A place in `own_things.py` without its folder."""
  return text.replace(f'{_FOLDER}/', '')


@pytest.fixture(scope='module')
def said(tmp_path_factory):
  tmp = tmp_path_factory.mktemp('own')
  shared = re.search(r'```\n(.*?)```', _PAGE.read_text(), re.DOTALL)[1]
  defaults = shared.replace('\\\n', ' ').split()
  typed = [*REFUSED, *STOPPED, *TAKEN]
  lines = [
    [*defaults, *flags.split(), f'--output_dir={tmp}/{number}']
    for number, flags in enumerate(typed)
  ]
  outcomes = binaries.drive('experiments.run', lines, _FOLDER)
  paths = [tmp / str(number) for number in range(len(typed))]
  return dict(zip(typed, zip(paths, outcomes), strict=True))


def test_the_page_is_read_whole():
  sections = REFUSED, STOPPED, TAKEN, PYTHON
  rows = sum(map(len, sections))
  checked = _PAGE.read_text().partition('\n## Elsewhere')[0]
  assert rows == checked.count('\n| `')
  assert min(map(len, sections)) >= 6


@pytest.mark.parametrize('flags', REFUSED)
def test_refused_before_anything_is_written(said, flags):
  path, (code, out, error) = said[flags]
  assert code == 2, error
  assert re.fullmatch(f'error: {_pattern(REFUSED[flags])}\n', _placed(error))
  assert out == ''
  assert not path.exists()


@pytest.mark.parametrize('flags', STOPPED)
def test_stopped_with_the_state_saved(said, flags):
  path, (code, _, error) = said[flags]
  assert code == 1, error
  (line,) = [x for x in error.splitlines() if x.startswith('error: ')]
  assert re.fullmatch(f'error: {_pattern(STOPPED[flags])}', _placed(line))
  assert (path / 'checkpoints' / 'state-0.index').exists()
  assert not (path / 'summary.json').exists()


@pytest.mark.parametrize('flags', TAKEN)
def test_taken(said, flags):
  path, (code, out, error) = said[flags]
  assert code == 0, error
  assert re.search(_pattern(TAKEN[flags]), ' '.join(out.split()))
  assert (path / 'summary.json').exists()


@pytest.mark.parametrize('typed', PYTHON)
def test_in_python(typed):
  names = {'bfl_tf': bfl_tf, 'own_things': own_things}
  try:
    answer = f'`{eval(typed, names)!r}`'
  except ValueError as error:
    answer = str(error)
  assert re.fullmatch(_pattern(PYTHON[typed]), answer)
