"""Tables of papers, with our values and the published ones."""

from collections.abc import Iterator, Mapping, Sequence
import csv
import dataclasses
import functools
import itertools
import pathlib

import numpy as np

from bfl_tf import files
from bfl_tf.runs import significance, tables
from experiments.harness.cells import (
  ACCURACY,
  Cell,
  CONFIGS,
  Measure,
  Paper,
  SEEDS,
  SMOKE,
)

_PUBLISHED = CONFIGS / 'published.csv'
_DASH = '-'
_DIVERGED = '†'


@dataclasses.dataclass(frozen=True)
class Table:
  """A published table, or one of our own.

  Attributes:
    grid: Cells by row (method) and column (setting), named as published.
    note: Note in the header for some scales, in place of the paper's.
    published_in: Table whose published values are shown; `name` if empty.
    published_rows: Names of rows in the published table, by our name.
  """

  paper: Paper
  name: str
  title: str
  grid: Mapping[tuple[str, str], Cell]
  measures: Sequence[Measure] = (ACCURACY,)
  seeds: Mapping[str, Sequence[int]] = dataclasses.field(
    default_factory=SEEDS.copy
  )
  note: Mapping[str, str] = dataclasses.field(default_factory=dict)
  published_in: str = ''
  published_rows: Mapping[str, str] = dataclasses.field(default_factory=dict)

  @property
  def is_published(self) -> bool:
    """Whether the table has published values."""
    return bool(published(self.paper.name, self.published_in or self.name))

  @property
  def cells(self) -> list[Cell]:
    """All cells, each once."""
    return list(dict.fromkeys(self.grid.values()))

  def entries(self, scale: str, root: pathlib.Path) -> list['Entry']:
    """Returns the entries, read from finished runs."""
    printed = published(self.paper.name, self.published_in or self.name)
    entries = []
    for (row, column), cell in self.grid.items():
      tasks = cell.tasks(scale, self.seeds[scale], root)
      done = [task for task in tasks if task.is_done]
      failures = [t.failure for t in tasks if t.failure and t not in done]
      for measure in self.measures:
        read = [measure.get(task) for task in done]
        values = np.array([value for value in read if value is not None], float)
        finite = values[np.isfinite(values)]
        method = self.published_rows.get(row, row)
        entry = Entry(
          row,
          column,
          measure.label,
          measure.digits,
          mean=float(finite.mean()) if finite.size else None,
          standard_error=significance.standard_error(finite),
          # If no run has this score, all finished runs are counted.
          seeds=finite.size if values.size else len(read),
          diverged=values.size - finite.size + sum(map(_ran_away, failures)),
          published=printed.get((column, method, measure.published)),
          reason=failures[0] if failures else '',
        )
        entries.append(entry)
    return entries

  def write(self, scale: str, root: pathlib.Path) -> tuple[str, int]:
    """Writes the table as CSV and Markdown; returns its text and 0 failures."""
    entries = self.entries(scale, root)
    stem = root / scale / self.paper.name / self.name
    stem.parent.mkdir(parents=True, exist_ok=True)
    tables.write_csv(
      stem.with_suffix('.csv'), [*map(dataclasses.asdict, entries)]
    )
    rows = markdown(_rows(self, entries))
    text = f'{_header(self, scale, entries)}\n\n{rows}'
    files.write_text(stem.with_suffix('.md'), text)
    notes = {f'{e.row}, {e.column}: {e.reason}': 0 for e in entries if e.reason}
    return '\n'.join([text, *notes]), 0


def _ran_away(why: str) -> bool:
  """Returns whether a run ended because a model diverged."""
  if why.startswith('TooFewClientsError'):
    # Updates were rejected for their values, and none is missing.
    return 'it raised' not in why and 'no reply' not in why
  return why.startswith('ComponentError') and 'is not finite' in why


@dataclasses.dataclass(frozen=True)
class Entry:
  """One number of a table: ours over seeds, and the published one.

  Attributes:
    standard_error: Standard error of the mean, or None below two seeds.
    seeds: Number of seeds that ended without a failure.
    diverged: Number of runs without finite scores or valid updates.
  """

  row: str
  column: str
  label: str
  digits: int
  mean: float | None
  standard_error: float | None
  seeds: int
  diverged: int
  published: float | None
  reason: str

  @property
  def text(self) -> str:
    """`81.67 ± 0.20`; a dash without finished runs, a mark if one diverged."""
    mark = _DIVERGED if self.diverged else ''
    if self.mean is None:
      return _DASH + mark
    text = f'{self.mean:.{self.digits}f}'
    if self.standard_error is not None:
      text += f' ± {self.standard_error:.{self.digits}f}'
    return text + mark

  @property
  def published_text(self) -> str:
    """The published value, or a dash."""
    if self.published is None:
      return _DASH
    return f'{self.published:.{self.digits}f}'


@functools.cache
def published(paper: str, table: str) -> dict[tuple[str, str, str], float]:
  """Returns published means by setting, method and metric."""
  several = paper != 'posterior_pooling'
  with _PUBLISHED.open(newline='', encoding='utf-8') as file:
    return {
      # The setting, with the column if a paper uses both.
      (
        (row['setting'] + f' {row["column"]}' * several).strip(),
        row['method'],
        row['metric'],
      ): float(row['mean'])
      for row in csv.DictReader(file)
      if row['paper'] == paper and row['table'] == table
    }


def _header(table, scale, entries):
  counts = sorted({entry.seeds for entry in entries})
  notes = {**table.paper.notes, **table.note, 'smoke': SMOKE}
  ran = f'{counts[0]}' if len(counts) == 1 else f'{counts[0]} to {counts[-1]}'
  return (
    f'{table.paper.name}/{table.name} at {scale} scale: {table.title}. '
    f'{notes[scale]} Mean ± standard error over {ran} of '
    f'{len(table.seeds[scale])} seeds'
    f'{" [published]" if table.is_published else ""}; {_DASH} no finished run, '
    f'{_DIVERGED} a run diverged.'
  )


def _rows(table, entries):
  labels = [measure.label for measure in table.measures]
  columns = list(dict.fromkeys(column for _, column in table.grid))
  methods = list(dict.fromkeys(row for row, _ in table.grid))
  found = {(e.row, e.column, e.label): e for e in entries}
  rows = [['Method', *(f'{c} {label}' for c in columns for label in labels)]]
  for method in methods:
    row = [method]
    for column, label in itertools.product(columns, labels):
      entry = found.get((method, column, label))
      text = entry.text if entry else _DASH
      if entry and table.is_published:
        text += f' [{entry.published_text}]'
      row.append(text)
    rows.append(row)
  return rows


def narrow(
  rows: list[list[str]], first: int, width: int = 100
) -> Iterator[list[list[str]]]:
  """Yields tables of at most a width, each with the first columns."""
  columns = [*zip(*rows)]
  sizes = [max(map(len, column)) + 3 for column in columns]
  shown = [*range(first)]
  for place in range(first, len(columns)):
    if len(shown) > first and sum(sizes[p] for p in [*shown, place]) >= width:
      yield [[row[p] for p in shown] for row in rows]
      shown = [*range(first)]
    shown.append(place)
  yield [[row[p] for p in shown] for row in rows]


def markdown(rows: list[list[str]]) -> str:
  """Returns rows as a Markdown table, heading first."""
  widths = [max(map(len, column)) for column in zip(*rows)]
  lines = [
    '| ' + ' | '.join(c.ljust(w) for c, w in zip(row, widths)) + ' |'
    for row in rows
  ]
  lines.insert(1, '|' + '|'.join('-' * (w + 2) for w in widths) + '|')
  return '\n'.join(lines) + '\n'
