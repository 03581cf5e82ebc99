"""Claims: statements of papers with a test that is fixed beforehand.

A comparison has one difference per seed. The seed fixes partition and initial
weights, so methods are paired by seed. A comparison holds if the one-sided test
of `hall` at 5 % finds a mean above zero.

A claim holds if all of its comparisons hold. This needs no correction: the
chance that all hold is at most the chance that one holds. A claim does not hold
if a mean is below zero after Holm's correction over its comparisons. If the
test is exact and all means are zero, at most 5 % of claims fail, for any number
of comparisons. For skewed differences, the test is not exact, and more fail.
Otherwise the claim is undecided. It is also undecided while a planned seed is
missing, for example after a diverged run. There is no test below two seeds.

"The slowest of three is faster" is three comparisons. The minimum of three
differences would often be below zero by chance.

Claims are judged on all planned seeds, since a test after each seed would
repeat the 5 % error.

Two one-sided tests at 5 % find a comparison equivalent if its difference is
within its margin of equivalence. A claim is equivalent if all its comparisons
are. This never changes a verdict. The margins for scores of classes were fixed
after the runs of seeds 10 to 19 had been seen.

The report has two effect sizes: the smallest mean with which a comparison
holds, at 5 %, and the smallest with which it alone fails. The latter is at
Holm's first level, 5 % over the number of comparisons.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
import csv
import dataclasses
import functools
import itertools
import math
import pathlib
from typing import Any

import numpy as np

from bfl_tf import files, run_files
from bfl_tf.runs import significance, tables
from experiments.harness import hall
from experiments.harness.cells import (
  Cell,
  Measure,
  OF_CLAIMS,
  Paper,
  POINTS,
  Task,
)

# Largest differences without importance, by label of a measure.
_EQUIVALENCE = {
  'points of accuracy': 0.5,
  'NLL (nats)': 0.01,
  'of ECE': 0.005,
  'points of calibration error': 0.5,
}
# Returns the value of a cell at a seed; NaN if there is none.
Values = Callable[[Cell, Measure, int], float]
VERDICTS = {'holds': 0, 'does not hold': 1, 'undecided': 3, 'no test': 3}


def spread(values: Sequence[float]) -> float:
  """Returns the difference of the largest and the smallest value."""
  return max(values) - min(values)


@dataclasses.dataclass(frozen=True)
class Side:
  """Several cells, and a function that reduces their values of one seed."""

  reduce: Callable[[Sequence[float]], float]
  cells: Sequence[Cell]


@dataclasses.dataclass(frozen=True)
class Comparison:
  """left - right + margin > 0, in the measure's unit.

  Attributes:
    left: Cell or side that is claimed to be larger.
    right: Cell or side that is claimed to be smaller; None for 0.
    margin: Above 0 for `at least on a par` or `no clear difference`; below 0
      for `clearly larger`.
    equivalence: Largest difference without importance, without `margin`; None:
      that of the measure, if it has one.
  """

  statement: str
  left: Cell | Side
  right: Cell | Side | None
  measure: Measure = POINTS
  margin: float = 0.0
  equivalence: float | None = None

  @property
  def cells(self) -> list[Cell]:
    """Cells of both sides."""
    return list(dict.fromkeys([*_cells(self.left), *_cells(self.right)]))

  def difference(self, values: Values, seed: int) -> float:
    """Returns the difference of one seed; NaN if a run is not finished."""
    right = self._value(self.right, values, seed) if self.right else 0.0
    left = self._value(self.left, values, seed)
    return float(significance.difference(left, right - self.margin))

  def _value(self, side, values, seed):
    values = [values(cell, self.measure, seed) for cell in _cells(side)]
    # A minimum would ignore the NaN of a diverged run.
    if not all(map(math.isfinite, values)):
      return math.nan
    return side.reduce(values) if isinstance(side, Side) else values[0]


def _cells(side):
  if side is None:
    return ()
  return side.cells if isinstance(side, Side) else (side,)


def over(
  cells: Mapping[Any, Cell | Side],
  lefts: str | Collection[str],
  rights: str | Collection[str],
  measure: Measure = POINTS,
  margin: float = 0.0,
  where: str | Collection[str] = '',
) -> list[Comparison]:
  """Returns comparisons of each of `lefts` with each of `rights`.

  Args:
    cells: Cells by name, or by name and column if `where` is given.
    where: One or several columns.
  """

  several = (
    [names] if isinstance(names, str) else names
    for names in (where, lefts, rights)
  )
  found = []
  for column, left, right in itertools.product(*several):
    at = f', {column}' if column else ''
    sides = [
      cells[(name, column) if column else name] for name in (left, right)
    ]
    statement = f'{left} minus {right}{at}'
    found.append(Comparison(statement, *sides, measure, margin))
  return found


@dataclasses.dataclass(frozen=True)
class Result:
  """Differences of a comparison over all planned seeds; NaN if missing."""

  comparison: Comparison
  differences: np.ndarray

  @property
  def seeds(self) -> int:
    """Number of seeds."""
    return self._finite.size

  @functools.cached_property
  def test(self) -> significance.Test | None:
    """Returns the test over the available seeds, or None below two seeds."""
    return hall.test(self._finite)

  @functools.cached_property
  def p_equivalent(self) -> float | None:
    """P-value of equivalence; None without a margin or a test."""
    margin = self.comparison.equivalence
    if margin is None:
      margin = _EQUIVALENCE.get(self.comparison.measure.label)
    if margin is None:
      return None
    return significance.equivalence(
      self._finite - self.comparison.margin, margin
    )

  @property
  def is_equivalent(self) -> bool:
    """Whether the difference is significantly within the margin."""
    p_value = self.p_equivalent
    return (
      self.is_complete and p_value is not None and p_value < significance.LEVEL
    )

  def row(self, verdict: str) -> dict[str, Any]:
    """Returns the mean and p-values, one-sided in the direction of the mean."""
    found = {
      'comparison': self.comparison.statement,
      'measure': self.comparison.measure.label,
      'seeds': self.seeds,
    }
    if not self.test:
      return {**found, 'verdict': verdict}
    mean = float(self._finite.mean())
    ahead = math.copysign(1.0, mean) * self._finite
    student, both = significance.student(ahead), hall.test(ahead)
    return {
      **found,
      'mean': mean,
      'standard_error': significance.standard_error(self._finite),
      'p_student': student.p_above if student else None,
      'p_student_and_hall': both.p_above if both else None,
      'p_sign_flip': hall.sign_flip(ahead),
      'verdict': verdict,
      'p_equivalent': self.p_equivalent,
      'equivalent': self.is_equivalent,
    }

  @property
  def _finite(self):
    return self.differences[np.isfinite(self.differences)]

  @property
  def is_complete(self) -> bool:
    """Whether no seed is missing; only complete results are judged."""
    return self.seeds == self.differences.size

  def text(self, verdict: str, num_comparisons: int = 1) -> str:
    """Returns one line; Holm's correction is over `num_comparisons`."""
    statement = self.comparison.statement
    if not self.seeds:
      return f'{statement}: no finished run'
    margin = self.comparison.margin
    error, details = significance.standard_error(self._finite), ''
    if test := self.test:
      below = -hall.threshold(-self._finite, num_comparisons)
      details = (
        f', one-sided tests at {significance.LEVEL:.0%} with '
        f'{self.seeds - 1} degrees of freedom, holds above '
        f'{hall.threshold(self._finite):.3f}, fails below {below:.3f}, '
        f'p {test.p_above:.3f} (above 0) and {test.p_below:.3f} (below 0)'
      )
    seeds = f'{self.seeds} of {self.differences.size} seeds'
    return (
      f'{statement}: {np.nanmean(self.differences):+.3f}'
      f'{f" ± {error:.3f}" if self.test else ""} '
      f'{self.comparison.measure.label}'
      f'{f", margin {margin:+g} included" if margin else ""}; {seeds}'
      f'{details}{", equivalent" if self.is_equivalent else ""}: {verdict}'
    )


@dataclasses.dataclass(frozen=True)
class Claim:
  """A paper's statement and its test.

  Attributes:
    comparisons: Comparisons, all of which must hold.
    expected: Verdict of the published means, without regard to their spread.
  """

  paper: Paper
  name: str
  statement: str
  comparisons: Sequence[Comparison]
  seeds: Mapping[str, Sequence[int]] = dataclasses.field(
    default_factory=OF_CLAIMS.copy
  )
  expected: str = 'holds'

  @property
  def cells(self) -> list[Cell]:
    """All cells, each once."""
    return list(dict.fromkeys(c for x in self.comparisons for c in x.cells))

  def results(self, scale: str, values: Values) -> list[Result]:
    """Returns the results of all comparisons."""
    seeds = self.seeds[scale]
    return [
      Result(one, np.array([one.difference(values, seed) for seed in seeds]))
      for one in self.comparisons
    ]


def of_runs(scale: str, root: pathlib.Path) -> Values:
  """Returns the values of finished runs."""

  def value(cell, measure, seed):
    task = Task(cell, scale, seed, root)
    return measure(task) if task.is_done else math.nan

  return value


def stored(scale: str, path: pathlib.Path) -> Values:
  """Returns the values of the runs in a file `claims.csv`."""
  with path.open(newline='', encoding='utf-8') as file:
    found = {
      (row['cell'], row['predictor'], row['measure'], int(row['seed'])): float(
        row['value'] or math.nan
      )
      for row in csv.DictReader(file)
    }

  def value(cell, measure, seed):
    key = cell.home(scale), cell.predictor, measure.label, seed
    return found.get(key, math.nan)

  return value


def verdicts(results: Sequence[Result]) -> list[str]:
  """Returns the verdict of each comparison of a claim."""
  tests = [result.test if result.is_complete else None for result in results]
  below = [test.p_below if test else 1 for test in tests]
  found = []
  for result, test, fails in zip(results, tests, significance.holm(below)):
    holds = test is not None and test.p_above < significance.LEVEL
    text = 'holds' if holds else 'undecided' if result.test else 'no test'
    found.append('does not hold' if fails else text)
  return found


def verdict(results: Sequence[Result]) -> str:
  """Returns the verdict of a claim from its comparisons."""
  found = verdicts(results)
  for decisive in ('does not hold', 'no test', 'undecided'):
    if decisive in found:
      return decisive
  return 'holds'


def report(
  claim: Claim, scale: str, values: Values
) -> tuple[str, str, list[dict[str, Any]]]:
  """Returns the verdict, a text that explains it, and a row per comparison."""
  results = claim.results(scale, values)
  outcome, each = verdict(results), verdicts(results)
  lines = [
    f'{claim.paper.name}/{claim.name} at {scale} scale: {outcome}',
    f'  {claim.statement}',
  ]
  if all(result.is_equivalent for result in results):
    lines.append('  (The differences are within the margins of equivalence.)')
  if claim.expected != 'holds':
    lines.append(f'  (Verdict of the published means: {claim.expected}.)')
  rows = []
  for result, own in zip(results, each):
    rows.append({'claim': claim.name, **result.row(own)})
    lines.append(f'  - {result.text(own, len(results))}')
  return outcome, '\n'.join(lines), rows


def write(
  claims: Sequence[Claim], scale: str, root: pathlib.Path
) -> tuple[list[str], list[str]]:
  """Writes claims of one paper: verdicts, and one value per run and measure.

  The files are `claims.txt`, `claims.csv` and `verdicts.csv`, with p-values, in
  the directory of the paper. They replace those of an earlier command.
  """
  folder = root / scale / claims[0].paper.name
  folder.mkdir(parents=True, exist_ok=True)
  found = judge(claims, scale, of_runs(scale, root), folder)
  rows = {}
  for claim in claims:
    for one, seed in itertools.product(claim.comparisons, claim.seeds[scale]):
      for cell in one.cells:
        task = Task(cell, scale, seed, root)
        key = cell.home(scale), cell.predictor, one.measure.label, seed
        if key in rows or not task.is_done:
          continue
        summary = run_files.read_summary(task.directory)
        rows[key] = {
          **dict(zip(('cell', 'predictor', 'measure', 'seed'), key)),
          'value': one.measure(task),
          'train_seconds': summary.get('train_seconds'),
        }
  tables.write_csv(folder / 'claims.csv', [rows[key] for key in sorted(rows)])
  return found


def judge(
  claims: Sequence[Claim], scale: str, values: Values, folder: pathlib.Path
) -> tuple[list[str], list[str]]:
  """Writes `claims.txt` and `verdicts.csv`; returns verdicts and texts."""
  found = [report(claim, scale, values) for claim in claims]
  verdicts, texts, rows = map(list, zip(*found))
  files.write_text(folder / 'claims.txt', '\n\n'.join([*texts, '']))
  tables.write_csv(folder / 'verdicts.csv', [*itertools.chain(*rows)])
  return verdicts, texts
