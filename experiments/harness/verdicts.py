"""All claims in one table: their verdicts, and what could have been seen."""

from collections.abc import Iterable
import pathlib
from typing import Any

import numpy as np

from bfl_tf.runs import rows as rows_lib
from experiments.harness import claims as claims_lib

# A smoke run says nothing about a method.
SCALES = ('laptop', 'overnight', 'paper')
_SHOWN = (
  'claim',
  'scale',
  'claim_verdict',
  'comparison',
  'unit',
  'verdict',
  'effect',
  'fails_from',
  'holds_from',
  'seeds',
)


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
  """Writes the rows of `read` as `verdicts.csv`; returns those that ran."""
  rows = read(claims, root)
  rows_lib.write_csv(root / 'verdicts.csv', rows)
  ran = [{name: row[name] for name in _SHOWN} for row in rows if row['seeds']]
  return rows_lib.table(ran) or 'nothing ran'
