"""What the cells of a table say: first seen, then written as numbers."""

import math
import re
from typing import NamedTuple

import numpy as np

from bfl_tf.datasets import encoding

_LARGEST = float(np.finfo(np.float32).max)
# What programs write for nothing; `Na` may be sodium.
MISSING = frozenset(
  ('', '?', 'NA', 'N/A', '#N/A', 'NaN', 'NAN', 'nan', 'NULL', 'null')
)
# Fewer cells than this for each word are names, or dates, or notes.
_CELLS_PER_CATEGORY = 3
_WHOLE = re.compile(r'(-?\d+)\.0+')


class Seen:
  """What the cells of a column were."""

  def __init__(self, name: str, is_categorical: bool):
    self.name, self._is_categorical = name, is_categorical
    self._has_gaps = self._has_numbers = False
    self._low, self._high = math.inf, -math.inf
    self._num_words = 0
    # By word, the row of the first cell that has it.
    self._words: dict[str, int] = {}

  def see(self, row: int, cell: str) -> None:
    if cell in MISSING:
      self._has_gaps = True
      return
    value = None if self._is_categorical else _number(cell)
    if value is not None:
      self._has_numbers = True
      if abs(value) <= _LARGEST:
        self._low, self._high = min(self._low, value), max(self._high, value)
        return
    self._num_words += 1
    self._words.setdefault(_word(cell), row)

  def features(self) -> list[encoding.Feature]:
    values: set[str | None] = set(self._words)
    if self._has_numbers:
      values.add(None)
    if self._has_gaps:
      values.add('')
    return encoding.of_column(self.name, values)

  def defect(self) -> str:
    words = [f'{word!r} in row {row}' for word, row in self._words.items()]
    if words and self._has_numbers:
      return (
        f'column {self.name!r} has numbers and {self._num_words} cells that '
        f'are no finite ones: {words[0]}'
      )
    few = self._num_words < _CELLS_PER_CATEGORY * len(words)
    if few and not self._is_categorical:
      return (
        f'column {self.name!r} has {len(words)} words in {self._num_words} '
        'cells, too many for categories'
      )
    spread = self._high - self._low
    if spread > 0 and abs(self._low) > 1e6 * spread:
      return (
        f'column {self.name!r} has large numbers that hardly differ, which '
        'float32 cannot hold (subtract the first from all)'
      )
    return ''


class Encoder(NamedTuple):
  """Where in a row of features a column is written.

  Attributes:
    number: place of the number; None of a column of categories.
    words: places by category, `''` for a gap.
  """

  number: int | None
  words: dict[str | None, int]

  @classmethod
  def of(cls, column: str, features: encoding.Features) -> 'Encoder':
    places = {
      f.value: at for at, f in enumerate(features) if f.column == column
    }
    number = places.pop(None, None)
    return cls(number, places)

  def write(self, cell: str, values: np.ndarray) -> str:
    """Writes what a cell says; returns why it cannot, if so."""
    word = '' if cell in MISSING else _word(cell)
    if word and self.number is not None:
      value = _number(cell)
      if value is None or not abs(value) <= _LARGEST:
        return 'no finite number'
      values[self.number] = value
      return ''
    if word not in self.words:
      return (
        'new to the run' if word else 'a missing value, and no site had one'
      )
    values[self.words[word]] = 1
    if self.number is not None:
      values[self.number] = math.nan
    return ''


def _number(text: str) -> float | None:
  """Returns a number, finite or not; None of anything else."""
  try:
    # Python takes 1_000 too, which no spreadsheet does.
    return None if '_' in text else float(text)
  except ValueError:
    return None


def _word(text: str) -> str:
  """Returns the category that a cell names; 1.0 and 1 name one."""
  whole = _WHOLE.fullmatch(text)
  return whole[1] if whole else text
