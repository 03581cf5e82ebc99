"""What a campaign has tried, kept on disk and counted."""

from collections.abc import Mapping
import dataclasses
import json
import pathlib


@dataclasses.dataclass(frozen=True)
class Trial:
  """What came of one attempt.

  Attributes:
    group: its row of the table.
    counts: how many attempts there were in it, by column.
    broken: which promise broke, and on what; empty if none did.
    note: what was measured.
  """

  group: str
  counts: Mapping[str, int]
  broken: str = ''
  note: str = ''


class Book:
  """Trials in a file, a line each: who is interrupted goes on counting."""

  def __init__(self, path: pathlib.Path):
    """Reads what is there."""
    self._path = path
    self.trials: list[Trial] = []
    if path.exists():
      # The last line may have been cut.
      whole = [x for x in path.read_text().splitlines(True) if x[-1] == '\n']
      self.trials = [Trial(**json.loads(line)) for line in whole]
      path.write_text(''.join(whole))

  @property
  def count(self) -> int:
    """Attempts so far."""
    return sum(sum(trial.counts.values()) for trial in self.trials)

  @property
  def broken(self) -> list[str]:
    """What broke, in order."""
    return [trial.broken for trial in self.trials if trial.broken]

  def add(self, trial: Trial) -> None:
    """Writes a trial down."""
    self.trials.append(trial)
    with self._path.open('a') as file:
      file.write(json.dumps(dataclasses.asdict(trial)) + '\n')

  def table(self) -> str:
    """Returns attempts by group and column, and how often each group broke."""
    groups = list(dict.fromkeys(trial.group for trial in self.trials))
    columns = sorted({name for trial in self.trials for name in trial.counts})
    rows = [['', *columns, 'all', 'broken']]
    for group in [*sorted(groups), 'all']:
      mine = [t for t in self.trials if group in (t.group, 'all')]
      numbers = [sum(t.counts.get(name, 0) for t in mine) for name in columns]
      broken = sum(bool(trial.broken) for trial in mine)
      rows.append([group, *map(str, [*numbers, sum(numbers), broken])])
    widths = [max(map(len, column)) for column in zip(*rows)]
    return '\n'.join(_line(row, widths) for row in rows)


def _line(row, widths):
  first, *rest = zip(row, widths)
  cells = [first[0].ljust(first[1]), *(text.rjust(w) for text, w in rest)]
  return '  '.join(cells).rstrip()
