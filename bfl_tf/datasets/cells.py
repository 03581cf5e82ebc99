"""What the cells of a table say: collected, then written as numbers."""

import array
from collections.abc import Iterator, Sequence
import math
import re

import numpy as np

from bfl_tf.datasets import arrays, encoding

_LARGEST = float(np.finfo(np.float32).max)
# What programs write for nothing; `Na` may be sodium.
MISSING = frozenset(
  ('', '?', 'NA', 'N/A', '#N/A', 'NaN', 'NAN', 'nan', 'NULL', 'null')
)
# Fewer cells than this for each word are names, or dates, or notes.
_CELLS_PER_CATEGORY = 3
_WHOLE = re.compile(r'(-?\d+)\.0+')


class Column:
  """The cells of a column, a place each, in the order in which they come."""

  def __init__(self, name: str, is_categorical: bool):
    self.name, self._is_categorical = name, is_categorical
    # By place: NaN where a cell is no finite number.
    self._numbers = array.array('d')
    # By word, the places of cells that say it; `''` for a gap.
    self._words: dict[str, array.array] = {}

  def add(self, cell: str) -> None:
    value = None if self._is_categorical else _number(cell)
    if value is None or not abs(value) <= _LARGEST:
      word = '' if cell in MISSING else _word(cell)
      places = self._words.setdefault(word, array.array('q'))
      places.append(len(self._numbers))
      value = math.nan
    self._numbers.append(value)

  def features(self) -> list[encoding.Feature]:
    values: set[str | None] = set(self._words)
    if len(self._numbers) > sum(map(len, self._words.values())):
      values.add(None)
    return encoding.of_column(self.name, values)

  def defects(self, rows: Sequence[int]) -> Iterator[str]:
    """Says why it can be no features; `rows` are by place."""
    if self._is_categorical:
      return
    said = {word: places for word, places in self._words.items() if word}
    num_cells = sum(map(len, said.values()))
    values = np.array(self._numbers)
    values = values[~np.isnan(values)]
    if said and (
      values.size or any(_number(word) is not None for word in said)
    ):
      word, places = next(iter(said.items()))
      yield (
        f'column {self.name!r} has numbers and {num_cells} cells that are no '
        f'finite ones: {word!r} in row {rows[places[0]]}'
      )
    elif num_cells < _CELLS_PER_CATEGORY * len(said):
      yield (
        f'column {self.name!r} has {len(said)} words in {num_cells} cells, too '
        'many for categories'
      )
    elif values.size and arrays.is_lost(values):
      yield f'column {self.name!r} has {arrays.LOST}'

  def misfits(
    self, like: encoding.Features, rows: Sequence[int]
  ) -> Iterator[str]:
    """Says which cells are none of another table's features."""
    wanted = {f.value for f in like if f.column == self.name}
    for word, places in self._words.items():
      why = 'a missing value, and no site had one'
      if word:
        why = 'no finite number' if None in wanted else 'new to the run'
      for at in places if word not in wanted else ():
        yield f'row {rows[at]}, column {self.name!r} has {word!r}, {why}'

  def write(self, x: np.ndarray, features: encoding.Features) -> None:
    """Writes what cells say into `[num_cells, num_features]`, which is 0."""
    for at, (column, value) in enumerate(features):
      if column != self.name:
        continue
      if value is None:
        x[:, at] = self._numbers
      else:
        x[self._words.get(value, []), at] = 1


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
