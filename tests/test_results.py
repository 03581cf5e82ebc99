"""Tests that docs/results.md agrees with the claims in results/."""

import collections
import pathlib
import re

import numpy as np

from experiments import papers
from experiments.harness import cells as cells_lib

_ROOT = pathlib.Path(__file__).parents[1]
_PAGE = (_ROOT / 'docs/results.md').read_text('utf-8')
# Smoke runs are no evidence for a claim.
SCALES = cells_lib.SCALES[1:]
_CLAIM = re.compile(r'^(\w+/\w+) at (\w+) scale: (.*)$', re.M)


def _page():
  """Returns the cells of all scales by claim."""
  rows, paper = {}, ''
  for line in re.findall(r'^\| (.*) \|$', _PAGE, re.M):
    claim, *cells = [cell.strip() for cell in line.split('|')]
    names = re.search(r'`([a-z0-9_]+)(/\.\.\.)?`', claim)
    if names and len(cells) == len(SCALES):
      name, is_paper = names.groups()
      paper = name if is_paper else paper
      if not is_paper:
        rows[f'{paper}/{name}'] = cells
  return rows


def _verdicts(cells):
  """Returns how many claims hold, do not hold, are undecided, have no test."""
  return [
    sum(cell.strip('*').startswith(name) for cell in cells)
    for name in ('holds', 'does not hold', 'undecided', 'no test')
  ]


def _counts():
  """Returns the numbers of the table of counts, summed by scale."""
  rows = re.findall(
    r'^\| (?:`(\w+)`|each).* \| \d+((?: \| \d+){4}) \|$', _PAGE, re.M
  )
  sums = collections.defaultdict(lambda: np.zeros(4, int))
  for scale, numbers in rows:
    sums[scale or 'largest'] += np.array(numbers.split(' | ')[1:], int)
  return {scale: row.tolist() for scale, row in sums.items()}


def test_the_results_page_agrees_with_the_claims_files():
  expected = {claim: dict.fromkeys(SCALES, '') for claim in papers.CLAIMS}
  for path in (_ROOT / 'results').glob('*/*/claims*.txt'):
    # Each claim is followed by its statement and comparisons.
    _, *found = _CLAIM.split(path.read_text('utf-8'))
    for claim, scale, verdict, text in zip(*[iter(found)] * 4, strict=True):
      assert not expected[claim][scale], 'A claim is judged once at a scale.'
      word = verdict if verdict == 'undecided' else f'**{verdict}**'
      every = re.findall(r'^  - .*: (.*?) *$', text, re.M)
      expected[claim][scale] = f'{word}, {every.count("holds")} of {len(every)}'
  page = _page()
  assert page == {claim: list(of.values()) for claim, of in expected.items()}
  columns = dict(zip(SCALES, zip(*page.values())))
  columns['largest'] = [[x for x in row if x][-1] for row in page.values()]
  assert _counts() == {key: _verdicts(of) for key, of in columns.items()}
