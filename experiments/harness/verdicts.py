"""All claims in one table: their verdicts, and what could have been seen."""

from collections.abc import Iterable, Sequence
import csv
import dataclasses
import io
import pathlib

import numpy as np

from bfl_tf import files
from experiments.harness import claims as claims_lib
from experiments.harness import tables

# A smoke run says nothing about a method.
SCALES = ('laptop', 'overnight', 'paper')
_DASH = '-'


@dataclasses.dataclass(frozen=True)
class Row:
  """A comparison of a claim at a scale; numbers are None where nothing ran.

  Attributes:
    claim: `<paper>/<name>`.
    scale: one of `SCALES`.
    claim_verdict: of the whole claim.
    comparison: what it says.
    verdict: its own.
    unit: of the effect.
    effect: mean difference over seeds, its margin included.
    standard_error: of the effect.
    holds_from: the smallest effect with which such a spread holds.
    fails_from: the one nearest to zero with which it fails, while no other
      comparison of the claim does.
    degrees_of_freedom: of the test.
    p_above: of so large an effect by chance.
    p_below: of so small a one.
    seeds: that ran.
    planned_seeds: that the verdict needs.
  """

  claim: str
  scale: str
  claim_verdict: str
  comparison: str
  verdict: str
  unit: str
  effect: float | None
  standard_error: float | None
  holds_from: float | None
  fails_from: float | None
  degrees_of_freedom: int | None
  p_above: float | None
  p_below: float | None
  seeds: int
  planned_seeds: int

  @property
  def text(self) -> str:
    """`+0.74 (-2.1, +1.2; 3): undecided`: what fails, what holds, seeds."""
    if self.effect is None:
      return _DASH
    visible = _DASH
    if self.fails_from is not None:
      visible = f'{self.fails_from:+.3g}, {self.holds_from:+.3g}'
    return f'{self.effect:+.3g} ({visible}; {self.seeds}): {self.verdict}'


def read(claims: Iterable[claims_lib.Claim], root: pathlib.Path) -> list[Row]:
  """Judges claims at every scale by what has been run; runs nothing."""
  return [
    row for claim in claims for scale in SCALES
    for row in _judge(claim, scale, root)
  ]  # fmt: skip


def _judge(claim, scale, root):
  results = claim.results(scale, root)
  whole = claims_lib.verdict(results)
  for result, verdict in zip(results, claims_lib.verdicts(results)):
    test = result.test
    yield Row(
      claim=f'{claim.paper.name}/{claim.name}',
      scale=scale,
      claim_verdict=whole,
      comparison=result.comparison.statement,
      verdict=verdict,
      unit=result.comparison.measure.label,
      effect=float(np.nanmean(result.differences)) if result.seeds else None,
      standard_error=test and test.standard_error,
      holds_from=test and test.visible(),
      fails_from=test and -test.visible(len(results)),
      degrees_of_freedom=test and test.degrees_of_freedom,
      p_above=test and test.p_above,
      p_below=test and test.p_below,
      seeds=result.seeds,
      planned_seeds=result.differences.size,
    )


def write(claims: Iterable[claims_lib.Claim], root: pathlib.Path) -> str:
  """Writes `verdicts.csv` and `verdicts.md`; returns the latter's text."""
  rows = read(claims, root)
  text = (
    'Verdicts by scale. Below a claim its comparisons: effect (what it fails '
    'from, what it holds from; seeds): verdict. These are the smallest visible '
    "effects by Student's one-sided test: a comparison holds at 5 %, and "
    'fails, alone, at 5 % over the number of comparisons (Holm). '
    f'{_DASH} nothing ran.\n\n{tables.markdown(_table(rows))}'
  )
  files.write_text(root / 'verdicts.csv', _csv(rows))
  files.write_text(root / 'verdicts.md', text)
  return text


def _table(rows: Sequence[Row]) -> list[list[str]]:
  """A line a claim and one a comparison, a column a scale."""
  lines = [['claim', 'unit', *SCALES]]
  by_claim: dict[str, dict[tuple[str, str], dict[str, Row]]] = {}
  for row in rows:
    comparisons = by_claim.setdefault(row.claim, {})
    comparisons.setdefault((row.comparison, row.unit), {})[row.scale] = row
  for claim, comparisons in by_claim.items():
    ran = {
      scale: _whole([found[scale] for found in comparisons.values()])
      for scale in SCALES
    }
    lines.append([f'**{claim}**', '', *ran.values()])
    for (comparison, unit), found in comparisons.items():
      texts = [found[scale].text for scale in SCALES]
      lines.append([comparison, unit, *texts])
  return lines


def _whole(rows):
  ran = any(row.seeds for row in rows)
  return f'**{rows[0].claim_verdict}**' if ran else _DASH


def _csv(rows):
  file = io.StringIO()
  writer = csv.DictWriter(file, [f.name for f in dataclasses.fields(Row)])
  writer.writeheader()
  writer.writerows(dataclasses.asdict(row) for row in rows)
  return file.getvalue()
