"""Progress lines of a run."""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import datetime
import threading
import time
from typing import Any

import numpy as np

from bfl_tf import metrics

_PERSONAL = 'personal_'
_SILENT_SECONDS = 30
_SHOWN, _OF_NUMBERS = (
  (
    *(score.name for score in table if score.in_progress),
    f'{_PERSONAL}{table[0].name}',
    'train_loss',
  )
  for table in (metrics.TABLE, metrics.REGRESSION)
)


class Progress:
  """One line per round, with an estimate of the remaining time."""

  def __init__(self, num_rounds: int, enabled: bool, has_prior: bool = False):
    self._num_rounds = num_rounds
    # Whether the loss has a KL term, and no warning about it was printed yet.
    self._has_prior = has_prior
    self._enabled = enabled
    self._seconds: list[float] = []
    self._said = time.monotonic()

  def report(self, row: Mapping[str, Any]) -> None:
    """Prints a round's row."""
    seconds = row.get('train_seconds', 0.0) + row.get('evaluate_seconds', 0.0)
    if row['round'] > 0:
      self._seconds.append(seconds)
    names = _OF_NUMBERS if 'rmse' in row else _SHOWN
    shown = [f'{n} {row[n]:.4g}' for n in names if row.get(n, '') != '']
    if number := row.get('clients_rejected'):
      # Under privacy, the clients are not named.
      clients = ', '.join(row['rejected'].split()[:10]) or 'not named'
      shown.append(f'rejected {number} (client {clients})')
    if number := row.get('clients_clipped'):
      shown.append(f'scaled down {number}')
    rounds, left = self._num_rounds - row['round'], ''
    if rounds and self._seconds:
      left = f', about {time_left(self._seconds, rounds)} left'
    width = len(str(self._num_rounds))
    self.say(
      f'round {row["round"]:{width}}/{self._num_rounds}  '
      f'{"  ".join(shown)}  {seconds:.1f} s{left}'
    )
    loss, nll = (row.get(name) or 0 for name in ('train_loss', 'nll'))
    if self._has_prior and row['round'] >= 3 and loss > 10 * nll > 0:
      self._has_prior = False
      self.say(
        f'train_loss is {loss / nll:.0f} times nll: the divergence from the '
        'prior dominates; --flipout.temperature below 1 lowers its weight'
      )

  def say(self, text: str) -> None:
    """Prints a line."""
    self._said = time.monotonic()
    if self._enabled:
      print(text, flush=True)

  @contextlib.contextmanager
  def heartbeat(self) -> Iterator[None]:
    """Prints a line every 30 seconds while long work prints none."""
    done, started = threading.Event(), time.monotonic()

    def beat():
      while not done.wait(1):
        now = time.monotonic()
        if now - self._said >= _SILENT_SECONDS:
          self.say(f'still working, {now - started:.0f} s after the start')

    threading.Thread(target=beat, daemon=True).start()
    try:
      yield
    finally:
      done.set()


def time_left(seconds: Sequence[float], number: int) -> datetime.timedelta:
  """Returns the time of more rounds or runs that take as long as the others."""
  return datetime.timedelta(seconds=round(number * sum(seconds) / len(seconds)))


def trend(losses: Sequence[float]) -> str:
  """Returns `rises`, `falls` or '': change of the mean over the last fifth.

  It must exceed two standard errors, and 1 % of the range of all losses.
  """
  size = len(losses) // 5
  if size < 2:
    return ''
  last = np.array(losses[-2 * size :]).reshape(2, size)
  change = last[1].mean() - last[0].mean()
  error = np.sqrt(last.var(-1, ddof=1).sum() / size)
  # NaN is no trend.
  is_clear = abs(change) > max(2 * error, 0.01 * np.ptp(losses))
  return ('rises' if change > 0 else 'falls') if is_clear else ''


def table(summary: Mapping[str, Any]) -> str:
  """Returns the final scores as a table of two columns."""
  rows = []
  for name, value in summary['final'].items():
    score, own = metrics.find(name), name.removeprefix(_PERSONAL)
    if not score and not name.startswith('validation_'):  # --own_scores.
      rows.append((name, metrics.as_text(value), ''))
      continue
    label = score.label if score else ''
    if own != name:
      label = f'personal {label}'
    if score and score.name == 'recall_class':
      label = f'recall of {name.removeprefix(f"{score.name}_")}'
    elif not score or score.name != own or not score.in_final:
      continue
    of_clients = own != name and own != 'lowest_accuracy'
    unit = 'mean over clients' if of_clients else score.unit
    rows.append((label, metrics.as_text(value), unit))
  width = max(len(label) for label, _, _ in rows)
  return '\n'.join(f'{row[0]:{width}}  {row[1]:>8}  {row[2]}' for row in rows)
