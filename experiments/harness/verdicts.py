"""All claims in one table: their verdicts, and what could have been seen."""

from collections.abc import Iterable, Sequence
import pathlib
from typing import Any

import numpy as np

from bfl_tf.runs import rows as rows_lib
from experiments.harness import claims as claims_lib
from experiments.harness import tables

# A smoke run says nothing about a method.
SCALES = ('laptop', 'overnight', 'paper')
_DASH = '-'


def read(
  claims: Iterable[claims_lib.Claim], root: pathlib.Path
) -> list[dict[str, Any]]:
  """Judges claims at every scale by what has been run; runs nothing.

  Returns:
    A row a comparison and scale, with None for what nothing ran for:
    `claim`, `<paper>/<name>`, with the `claim_verdict` of all its comparisons;
    `effect`, the mean difference over seeds, its margin included; `holds_from`,
    the smallest effect with which such a spread holds; `fails_from`, the one
    nearest to zero with which it fails while no other comparison does.
  """
  return [
    row for claim in claims for scale in SCALES
    for row in _judge(claim, scale, root)
  ]  # fmt: skip


def _judge(claim, scale, root):
  results = claim.results(scale, root)
  whole = claims_lib.verdict(results)
  for result, verdict in zip(results, claims_lib.verdicts(results)):
    test = result.test
    yield {
      'claim': f'{claim.paper.name}/{claim.name}',
      'scale': scale,
      'claim_verdict': whole,
      'comparison': result.comparison.statement,
      'verdict': verdict,
      'unit': result.comparison.measure.label,
      'effect': float(np.nanmean(result.differences)) if result.seeds else None,
      'standard_error': test and test.standard_error,
      'holds_from': test and test.visible(),
      'fails_from': test and -test.visible(len(results)),
      'degrees_of_freedom': test and test.degrees_of_freedom,
      'p_above': test and test.p_above,
      'p_below': test and test.p_below,
      'seeds': result.seeds,
      'planned_seeds': result.differences.size,
    }


def write(claims: Iterable[claims_lib.Claim], root: pathlib.Path) -> str:
  """Writes the rows of `read` as `verdicts.csv`; returns them as a table."""
  rows = read(claims, root)
  rows_lib.write_csv(root / 'verdicts.csv', rows)
  return (
    'Verdicts by scale. Below a claim its comparisons: effect (what it fails '
    'from, what it holds from; seeds): verdict. These are the smallest visible '
    "effects by Student's one-sided test: a comparison holds at 5 %, and "
    'fails, alone, at 5 % over the number of comparisons (Holm). '
    f'{_DASH} nothing ran.\n\n{tables.markdown(_table(rows))}'
  )


def _table(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
  """A line a claim and one a comparison, a column a scale."""
  lines: dict[tuple[str, ...], dict[str, str]] = {}
  for row in rows:
    whole = lines.setdefault((row['claim'],), dict.fromkeys(SCALES, _DASH))
    if row['seeds']:
      whole[row['scale']] = f'**{row["claim_verdict"]}**'
    key = row['claim'], row['comparison'], row['unit']
    lines.setdefault(key, {})[row['scale']] = _text(row)
  table = [['claim', 'unit', *SCALES]]
  for (claim, *comparison), texts in lines.items():
    names = comparison or [f'**{claim}**', '']
    table.append([*names, *(texts[scale] for scale in SCALES)])
  return table


def _text(row):
  """`+0.74 (-2.1, +1.2; 3): undecided`: what fails, what holds, seeds."""
  if row['effect'] is None:
    return _DASH
  visible = _DASH
  if row['fails_from'] is not None:
    visible = f'{row["fails_from"]:+.3g}, {row["holds_from"]:+.3g}'
  return f'{row["effect"]:+.3g} ({visible}; {row["seeds"]}): {row["verdict"]}'
