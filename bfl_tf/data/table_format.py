"""Notation of the cells of a table, and numbers in another notation."""

from collections.abc import Iterable
import dataclasses
import functools
import pathlib
import re
import shlex

import numpy as np

# Common texts for missing values; `Na` is excluded because it may be sodium.
_MISSING = ('', '?', 'NA', 'N/A', '#N/A', 'NaN', 'NAN', 'nan', 'NULL', 'null')
# Decimal and thousands separators in use.
_NOTATIONS = (
  ('.', ''), (',', ''), ('.', ','), (',', '.'), ('.', 'space'),
  (',', 'space'), ('.', "'"), (',', "'"),
)  # fmt: skip
_MARKS = {
  'separator': (',', ';', '|', 'tab'),
  'decimal': ('.', ','),
  'thousands': (',', '.', "'", 'space'),
}
# Characters of a mark with a name; `space` includes no-break spaces.
_NAMED = {'space': ' \xa0\u202f', 'tab': '\t'}


@dataclasses.dataclass(frozen=True)
class TableFormat:
  """Notation of the cells of a table; the fields are flags of a run."""

  separator: str = ''
  decimal: str = '.'
  thousands: str = ''
  missing_values: tuple[str, ...] = ()

  def __post_init__(self):
    for flag, marks in _MARKS.items():
      value = getattr(self, flag)
      if value not in ('', *marks):
        raise ValueError(f'--{flag}={value} must be one of {" ".join(marks)}.')
    if (self.decimal, self.thousands) not in _NOTATIONS:
      raise ValueError(
        f'--decimal={self.decimal} and --thousands={self.thousands} must be '
        'different marks.'
      )

  def separator_of(self, path: str) -> str:
    """Returns the character between the cells of a file."""
    default = '\t' if pathlib.PurePath(path).suffix.lower() == '.tsv' else ','
    return _NAMED.get(self.separator, self.separator) or default

  def of(self, column: str) -> 'TableFormat':
    """Returns the notation of a column, with its own missing values.

    The missing value `age:999` is 999 in the column `age`, and not missing in
    other columns.
    """
    own = f'{column}:'
    marks = [
      mark.removeprefix(own)
      for mark in self.missing_values
      if ':' not in mark or mark.startswith(own)
    ]
    return dataclasses.replace(self, missing_values=tuple(marks))

  def is_missing(self, cells: Iterable[str]) -> np.ndarray:
    """Returns for each cell whether it is a missing value, `[num_cells]`."""
    marks = {*_MISSING, *self.missing_values}
    missing = np.array([cell in marks for cell in cells], bool)
    if self.missing_values:
      missing |= np.isin(self._read(cells), self._read(self.missing_values))
    return missing

  def numbers(self, cells: Iterable[str]) -> np.ndarray:
    """Returns float64 numbers `[num_cells]`; NaN for missing and other texts.

    If every cell that is not missing is a percentage, `45%` is 0.45.
    """
    numbers = self._read(cells)
    if self.missing_values or np.isnan(numbers).any():
      missing = self.is_missing(cells)
      known = [cell for cell, gap in zip(cells, missing) if not gap]
      if known and all(cell.endswith('%') for cell in known):
        numbers = self._read(c.removesuffix('%').rstrip() for c in cells) / 100
      numbers[missing] = np.nan
    return numbers

  def _read(self, cells):
    is_number = _pattern(self.decimal, self.thousands).fullmatch
    gone = _NAMED.get(self.thousands, self.thousands)
    table = str.maketrans(self.decimal, '.', gone)
    return np.array(
      [float(c.translate(table)) if is_number(c) else np.nan for c in cells]
    )

  def remedy(self, word: str, all_cells: Iterable[str]) -> str:
    """Returns how to read a word that is a number in another notation, or ''.

    `all_cells` are all texts of its column that are not missing values.
    """
    flags = self._flags([word])
    same = [flag for flag in self._flags(all_cells) or flags if flag]
    mixed = ['% in all cells or in none'] if flags and '%' in word else []
    return ' or '.join(same or mixed)

  def _flags(self, words) -> list[str]:
    """Returns all choices of flags with which these words are numbers."""
    words = [word.removesuffix('%').rstrip() for word in words]
    choices = []
    for notation in _NOTATIONS:
      new = {
        name: mark
        for name, mark in zip(('decimal', 'thousands'), notation)
        if mark != getattr(self, name)
      }
      used = all(
        not mark or any(c in w for w in words for c in _NAMED.get(mark, mark))
        for mark in new.values()
      )
      if used and all(map(_pattern(*notation).fullmatch, words)):
        flags = (f'--{n}={shlex.quote(mark)}' for n, mark in new.items())
        choices.append(' '.join(flags))
    return choices


@functools.cache
def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
  """Returns the pattern of a number."""
  whole, point = '[0-9]+', re.escape(decimal)
  if thousands:
    mark = f'[{_NAMED.get(thousands, thousands)}]'
    whole = f'(?:[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+|{whole})'
  digits = f'(?:{whole}{point}?[0-9]*|{point}[0-9]+)'
  return re.compile(f'[+-]?{digits}(?:[eE][+-]?[0-9]+)?')


DEFAULT = TableFormat()
