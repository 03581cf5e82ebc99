"""The page of verdicts says what the claims' own texts in results/ say."""

import pathlib
import re

from experiments import artifacts

_ROOT = pathlib.Path(__file__).parents[1]
_CLAIM = re.compile(r'^(\w+/\w+) at (\w+) scale: (.*)$', re.M)


def _page():
  """Returns (laptop, paper, what decides) by claim, of the page's table."""
  page = (_ROOT / 'docs/results.md').read_text()
  rows, paper = {}, ''
  for line in re.findall(r'^\| (.*) \|$', page, re.M):
    cells = [cell.strip() for cell in line.split('|')]
    names = re.search(r'`([a-z0-9_]+)(/\.\.\.)?`', ' '.join(cells[:2]))
    if names and len(cells) == 5:
      name, is_paper = names.groups()
      paper = name if is_paper else paper
      if not is_paper:
        rows[f'{paper}/{name}'] = cells[2:]
  return rows


def test_page_says_what_the_texts_say():
  expected, decides = {}, {}
  for path in (_ROOT / 'results').glob('*/*/claims*.txt'):
    # A claim, then what it says and its comparisons.
    _, *found = _CLAIM.split(path.read_text())
    for claim, scale, verdict, text in zip(*[iter(found)] * 4, strict=True):
      assert claim not in expected, 'A claim is judged once.'
      word = verdict if verdict == 'undecided' else f'**{verdict}**'
      expected[claim] = [
        word if scale == each else '' for each in ('laptop', 'paper')
      ]
      decides[claim] = text
  page = _page()
  assert expected.keys() == page.keys() == artifacts.CLAIMS.keys()
  for claim, (*verdicts, what) in page.items():
    assert verdicts == expected[claim], claim
    # The comparison, its effect and error.
    quoted = re.match(r'.*? [+-][\d.]+ ± [\d.]+', what)[0]
    assert f'  - {quoted} ' in decides[claim], claim
