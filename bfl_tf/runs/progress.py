"""Progress bar and progress lines of a run."""

from collections.abc import Mapping
from typing import Any

import tqdm

from bfl_tf import metrics

_PERSONAL = 'personal_'
_SHOWN, _OF_NUMBERS = (
  (
    *(score.name for score in table if score.in_progress),
    f'{_PERSONAL}{table[0].name}',
    'train_loss',
  )
  for table in (metrics.TABLE, metrics.REGRESSION)
)


class Progress:
  """A tqdm bar over rounds, with one line per round above it."""

  def __init__(self, num_rounds: int, enabled: bool, has_prior: bool = False):
    self._num_rounds = num_rounds
    # Whether the loss has a KL term, and no warning about it was printed yet.
    self._has_prior = has_prior
    self._enabled = enabled
    self._bar: Any = None
    self._seconds: list[float] = []

  def begin(self, rounds_done: int) -> None:
    """Draws the bar if the output is a terminal."""
    self._bar = tqdm.tqdm(
      total=self._num_rounds,
      initial=rounds_done,
      unit='round',
      disable=None if self._enabled else True,
      leave=False,
    )

  def report(self, row: Mapping[str, Any]) -> None:
    """Prints a round's row and advances the bar."""
    seconds = row.get('train_seconds', 0.0) + row.get('evaluate_seconds', 0.0)
    if row['round'] > 0:
      self._bar.update()
      self._seconds.append(seconds)
    names = _OF_NUMBERS if 'rmse' in row else _SHOWN
    shown = [f'{n} {row[n]:.4g}' for n in names if row.get(n, '') != '']
    if number := row.get('clients_rejected'):
      # Under privacy, the clients are not named.
      clients = ', '.join(row['rejected'].split()[:10]) or 'not named'
      shown.append(f'rejected {number} (client {clients})')
    width = len(str(self._num_rounds))
    self.say(
      f'round {row["round"]:{width}}/{self._num_rounds}  '
      f'{"  ".join(shown)}  {seconds:.1f} s{self._left(row["round"])}'
    )

    loss, nll = (row.get(name) or 0 for name in ('train_loss', 'nll'))
    if self._has_prior and row['round'] >= 3 and loss > 10 * nll > 0:
      self._has_prior = False
      self.say(
        f'train_loss is {loss / nll:.0f} times nll: the divergence from the '
        'prior dominates; --flipout.temperature below 1 lowers its weight'
      )

  def _left(self, rounds_done):
    rounds = self._num_rounds - rounds_done
    if not rounds or not self._seconds:
      return ''
    # Log files contain no bar, so they need their own estimate.
    seconds = rounds * sum(self._seconds) / len(self._seconds)
    return f', {tqdm.tqdm.format_interval(seconds)} left'

  def say(self, text: str) -> None:
    """Prints a line above the bar."""
    if self._enabled:
      tqdm.tqdm.write(text)

  def __enter__(self) -> 'Progress':
    return self

  def __exit__(self, *unused: Any) -> None:
    self._bar.close()


def table(summary: Mapping[str, Any]) -> str:
  """Returns the final scores as a table of two columns."""
  rows = []
  for name, value in summary['final'].items():
    score, own = metrics.find(name), name.removeprefix(_PERSONAL)
    label = score.label if score else ''
    if own != name:
      label = f'personal {label}'
    if score and score.name == 'recall_class':
      number = int(name.rpartition('_')[2])
      label = f'recall of {summary["classes"][number]}'
    elif not score or score.name != own or not score.in_final:
      continue
    unit = score.unit if own == name else 'mean over clients'
    rows.append((label, metrics.as_text(value), unit))
  width = max(len(label) for label, _, _ in rows)
  return '\n'.join(f'{row[0]:{width}}  {row[1]:>8}  {row[2]}' for row in rows)
