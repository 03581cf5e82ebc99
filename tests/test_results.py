"""Tests that docs/results.md agrees with the claims in results/."""

import pathlib
import re

from experiments import papers
from experiments.harness import cells as cells_lib

_ROOT = pathlib.Path(__file__).parents[1]
# Smoke runs are no evidence for a claim.
SCALES = cells_lib.SCALES[1:]
_CLAIM = re.compile(r'^(\w+/\w+) at (\w+) scale: (.*)$', re.M)


def _page():
  """Returns [verdict by scale, number of comparisons that hold] by claim."""
  page = (_ROOT / 'docs/results.md').read_text()
  rows, paper = {}, ''
  for line in re.findall(r'^\| (.*) \|$', page, re.M):
    claim, *cells = [cell.strip() for cell in line.split('|')]
    names = re.search(r'`([a-z0-9_]+)(/\.\.\.)?`', claim)
    if names and len(cells) == len(SCALES) + 1:
      name, is_paper = names.groups()
      paper = name if is_paper else paper
      if not is_paper:
        rows[f'{paper}/{name}'] = cells
  return rows


def test_the_results_page_agrees_with_the_claims_files():
  expected, comparisons = {}, {}
  for path in (_ROOT / 'results').glob('*/*/claims*.txt'):
    # Each claim is followed by its statement and comparisons.
    _, *found = _CLAIM.split(path.read_text())
    for claim, scale, verdict, text in zip(*[iter(found)] * 4, strict=True):
      verdicts = expected.setdefault(claim, dict.fromkeys(SCALES, ''))
      assert not verdicts[scale], 'A claim is judged once at a scale.'
      word = verdict if verdict == 'undecided' else f'**{verdict}**'
      verdicts[scale] = word
      comparisons[claim, scale] = text
  page = _page()
  assert expected.keys() == page.keys() == papers.CLAIMS.keys()
  for claim, (*verdicts, count) in page.items():
    assert verdicts == list(expected[claim].values()), claim
    largest = [scale for scale in SCALES if expected[claim][scale]][-1]
    every = re.findall(r'^  - .*: (.*?) *$', comparisons[claim, largest], re.M)
    assert count == f'{every.count("holds")} of {len(every)}', claim
