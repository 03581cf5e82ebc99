"""Tests that docs/results.md agrees with the claims in results/."""

import pathlib
import re

from experiments import papers
from experiments.harness import cells as cells_lib

_ROOT = pathlib.Path(__file__).parents[1]
# Smoke runs are no evidence for a claim.
SCALES = cells_lib.SCALES[1:]
_CLAIM = re.compile(r'^(\w+/\w+) at (\w+) scale: (.*)$', re.M)


def _rows(page, width):
  """Returns the other cells of each claim's row in a table of this width."""
  rows, paper = {}, ''
  for line in re.findall(r'^\| (.*) \|$', (_ROOT / page).read_text(), re.M):
    cells = [cell.strip() for cell in line.split('|')]
    names = re.search(r'`([a-z0-9_]+)(/\.\.\.)?`', cells[0])
    if names and len(cells) == width:
      name, is_paper = names.groups()
      paper = name if is_paper else paper
      if not is_paper:
        rows[f'{paper}/{name}'] = cells[1:]
  return rows


def test_the_results_page_agrees_with_the_claims_files():
  expected, decides = {}, {}
  for path in (_ROOT / 'results').glob('*/*/claims*.txt'):
    # Each claim is followed by its statement and comparisons.
    _, *found = _CLAIM.split(path.read_text())
    for claim, scale, verdict, text in zip(*[iter(found)] * 4, strict=True):
      verdicts = expected.setdefault(claim, dict.fromkeys(SCALES, ''))
      assert not verdicts[scale], 'A claim is judged once at a scale.'
      word = verdict if verdict == 'undecided' else f'**{verdict}**'
      verdicts[scale] = word
      decides[claim, scale] = text
  page = _rows('docs/results.md', 2 + len(SCALES))
  quotes = _rows('results/deciding_comparisons.md', 2)
  assert expected.keys() == page.keys() == quotes.keys() == papers.CLAIMS.keys()
  for claim, (*verdicts, count) in page.items():
    assert verdicts == list(expected[claim].values()), claim
    largest = [scale for scale in SCALES if expected[claim][scale]][-1]
    text = decides[claim, largest]
    every = re.findall(r'^  - .*: (.*?) *$', text, re.M)
    assert count == f'{every.count("holds")} of {len(every)}', claim
    quoted = re.match(r'.*? [+-][\d.]+ ± [\d.]+', quotes[claim][0])[0]
    assert f'  - {quoted} ' in text, claim
