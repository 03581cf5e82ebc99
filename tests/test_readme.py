"""Tests of README.md and its pages: examples, names, flags, links."""

import contextlib
import io
import pathlib
import re

import pytest

from bfl_tf.config import catalog, config

_ROOT = pathlib.Path(__file__).parents[1]
_README = (_ROOT / 'README.md').read_text('utf-8')
_METHODS = (_ROOT / 'docs/methods.md').read_text('utf-8')


def test_the_example_prints_the_output_that_the_page_shows():
  shown = re.search(
    r'```python\n(.*?)```\s*```text\n(.*?)```', _METHODS, re.DOTALL
  )
  printed = io.StringIO()
  with contextlib.redirect_stdout(printed):
    exec(compile(shown[1], 'methods.md', 'exec'), {'__name__': '__main__'})
  assert printed.getvalue() == shown[2]


def test_the_methods_page_has_every_setting():
  for key in catalog.known_settings():
    assert re.search(rf'[`.]{key.partition(".")[2]}`', _METHODS), key


def test_named_files_of_the_package_exist():
  for page in (_ROOT / 'README.md', *(_ROOT / 'docs').glob('*.md')):
    for path in re.findall(r'`(bfl_tf/[^`]*)`', page.read_text('utf-8')):
      assert (_ROOT / path).exists(), (page, path)


@pytest.mark.parametrize(
  'page',
  [
    'README.md',
    *(
      f'docs/{name}.md'
      for name in ('architecture', 'decisions', 'methods', 'prior', 'scores',
                   'your_data', 'deployment')
    ),
  ],
)  # fmt: skip
def test_flags_on_the_pages_exist(page):
  known = {'method', 'needs', *config.FIELDS, *catalog.known_settings()}
  known |= {'flagfile', 'help', 'helpfull', 'describe'}
  for path in (_ROOT / 'experiments').glob('*.py'):
    known |= {*re.findall(r"DEFINE_\w+\(\s*'(\w+)'", path.read_text('utf-8'))}
  # Placeholders of the pages; flags of online; flags of Flower and TensorBoard.
  known |= {'NAME.setting', 'name.setting', 'add', 'replace', 'remove'}
  known |= {'host', 'port', 'database', 'logdir', 'strict'}
  text = (_ROOT / page).read_text('utf-8')
  # Flags with a dash are not checked.
  mentioned = re.findall(r'(?<![\w-])--([a-zA-Z][\w.]*\w)(?![\w-])', text)
  assert mentioned
  assert set(mentioned) <= known
