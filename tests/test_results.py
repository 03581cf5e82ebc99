"""The page of verdicts says what the claims' own texts in results/ say."""

import pathlib
import re

import pytest

from experiments import artifacts

_ROOT = pathlib.Path(__file__).parents[1]
_CLAIM = re.compile(r'^(\w+/\w+) at (\w+) scale: (.*)$')
_COMPARISON = re.compile(
  r'^  - (?P<statement>.+): (?P<effect>[+-]\S+ ± \S+) (?P<unit>[^;]+); '
  r'.*(?:visible|holds) from (?P<holds>[^,]+)'
  r'(?:, fails from (?P<fails>[^,]+))?, '
  r'p (?P<above>\S+) above and (?P<below>\S+) below: (?P<verdict>.*)$'
)


def _claims():
  """Returns (claim, scale, verdict, comparisons) of every text."""
  found = []
  for path in sorted((_ROOT / 'results').glob('*/*/claims*.txt')):
    for line in map(str.rstrip, path.read_text().splitlines()):
      if claim := _CLAIM.match(line):
        found.append((*claim.groups(), []))
      elif line.startswith('  - '):
        comparison = _COMPARISON.match(line)
        assert comparison, f'{path}: {line}'
        found[-1][-1].append(comparison.groupdict())
  return found


def _decides(verdict, comparisons):
  """The comparison that a claim's verdict hangs on, as the page has it."""
  fails = verdict == 'does not hold'
  one = max(
    (one for one in comparisons if one['verdict'] == verdict),
    key=lambda one: -float(one['below']) if fails else float(one['above']),
  )
  # Texts from before `fails from` do not say it.
  visible = (one['fails'] or '-') if fails else one['holds']
  hold = sum(one['verdict'] == 'holds' for one in comparisons)
  several = f'; {hold} of {len(comparisons)} hold' if comparisons[1:] else ''
  return (
    f'{one["statement"]}: {one["effect"]} {one["unit"]} ({visible}){several}'
  )


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


def test_page_has_every_claim_and_nothing_else():
  assert sorted(_page()) == sorted(artifacts.CLAIMS)


def test_a_claim_is_judged_once():
  names = [claim for claim, *_ in _claims()]
  assert sorted(names) == sorted(artifacts.CLAIMS)


@pytest.mark.parametrize('claim, scale, verdict, comparisons', _claims())
def test_page_says_what_the_text_says(claim, scale, verdict, comparisons):
  word = verdict if verdict == 'undecided' else f'**{verdict}**'
  shown = [word if scale == each else '' for each in ('laptop', 'paper')]
  assert _page()[claim] == [*shown, _decides(verdict, comparisons)]
