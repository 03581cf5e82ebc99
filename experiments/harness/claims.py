"""A claim: a statement, the cells it needs, and a test fixed beforehand.

A comparison is a difference per seed (the seed fixes partition and initial
weights, so methods pair by it). It holds where the mean is more than two
standard errors above zero, does not hold where it is as far below, and is
undecided else; with three seeds that is a one-sided level of 9 %. A claim holds
if all its comparisons do, and does not hold if one does not.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import pathlib

import numpy as np

from experiments.harness import cells as cells_lib
from experiments.harness import tables

VERDICTS = {'holds': 0, 'does not hold': 1, 'undecided': 3}


def spread(values: Sequence[float]) -> float:
  """The largest less the least."""
  return max(values) - min(values)


def only(values: Sequence[float]) -> float:
  """The one value."""
  (value,) = values
  return value


@dataclasses.dataclass(frozen=True)
class Side:
  """Cells, and what is made of their values of one seed."""

  reduce: Callable[[Sequence[float]], float]
  cells: Sequence[cells_lib.Cell]


@dataclasses.dataclass(frozen=True)
class Comparison:
  """left - right + margin > 0, in the measure's unit.

  Attributes:
    statement: what it says.
    left: the side that is claimed to be larger.
    right: the other; None compares with 0.
    measure: what is compared.
    margin: above 0 for `at least on a par` or `no clear difference`, below 0
      for `clearly larger`.
  """

  statement: str
  left: Side
  right: Side | None
  measure: cells_lib.Measure
  margin: float = 0.0

  @property
  def cells(self) -> list[cells_lib.Cell]:
    """Of both sides."""
    right = self.right.cells if self.right else ()
    return list(dict.fromkeys([*self.left.cells, *right]))

  def difference(self, tasks: Mapping[cells_lib.Cell, cells_lib.Task]) -> float:
    """Of one seed; NaN where a run has not ended."""
    if not all(task.is_done for task in tasks.values()):
      return float('nan')
    right = self._value(self.right, tasks) if self.right else 0.0
    return self._value(self.left, tasks) - right + self.margin

  def _value(self, side, tasks):
    return side.reduce([self.measure(tasks[cell]) for cell in side.cells])


@dataclasses.dataclass(frozen=True)
class Result:
  """Of a comparison: differences over seeds, their mean, its error, verdict."""

  comparison: Comparison
  differences: np.ndarray

  @property
  def verdict(self) -> str:
    """`holds`, `does not hold` or `undecided`."""
    error = tables.standard_error(self.differences)
    if error is None or not np.all(np.isfinite(self.differences)):
      return 'undecided'
    mean = self.differences.mean()
    if mean > 2 * error:
      return 'holds'
    return 'does not hold' if mean < -2 * error else 'undecided'

  @property
  def text(self) -> str:
    """One line."""
    finite = self.differences[np.isfinite(self.differences)]
    if not finite.size:
      return f'{self.comparison.statement}: nothing ran'
    error = tables.standard_error(finite) or 0.0
    margin = self.comparison.margin
    return (
      f'{self.comparison.statement}: {finite.mean():+.3f} ± {error:.3f} '
      f'{self.comparison.measure.label}'
      f'{f", margin {margin:+g} included" if margin else ""}, '
      f'{finite.size} seeds: {self.verdict}'
    )


@dataclasses.dataclass(frozen=True)
class Claim:
  """A paper's statement and its test.

  Attributes:
    paper: whose.
    name: for `--claim=<paper>/<name>`.
    statement: in the paper's sense.
    comparisons: all must hold.
    seeds: how many, by scale.
    expected: the verdict that the published tables themselves give, if they
      contradict the text.
  """

  paper: cells_lib.Paper
  name: str
  statement: str
  comparisons: Sequence[Comparison]
  seeds: Mapping[str, int]
  expected: str = 'holds'

  @property
  def cells(self) -> list[cells_lib.Cell]:
    """All of them, once."""
    return list(dict.fromkeys(c for x in self.comparisons for c in x.cells))

  def results(self, scale: str, root: pathlib.Path) -> list[Result]:
    """Tests the claim on what has been run."""
    return [
      Result(
        comparison,
        np.array(
          [
            comparison.difference(
              {
                cell: cells_lib.Task(cell, scale, seed, root)
                for cell in comparison.cells
              }
            )
            for seed in range(self.seeds[scale])
          ]
        ),
      )
      for comparison in self.comparisons
    ]


def verdict(results: Sequence[Result]) -> str:
  """Of a claim, from its comparisons."""
  verdicts = [result.verdict for result in results]
  if 'does not hold' in verdicts:
    return 'does not hold'
  return 'undecided' if 'undecided' in verdicts else 'holds'


def report(claim: Claim, scale: str, root: pathlib.Path) -> tuple[str, str]:
  """Returns the verdict, and all of it as text."""
  results = claim.results(scale, root)
  outcome = verdict(results)
  lines = [
    f'{claim.paper.name}/{claim.name} at {scale} scale: {outcome}',
    f'  {claim.statement}',
    *(
      [f'  (The published tables themselves say: {claim.expected}.)']
      if claim.expected != 'holds'
      else []
    ),
    *(f'  - {result.text}' for result in results),
  ]
  return outcome, '\n'.join(lines)
