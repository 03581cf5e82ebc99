"""What a person sees of a run: a line a round, and a table at the end."""

from collections.abc import Mapping
import datetime
from typing import Any

_SHOWN = ('accuracy', 'nll', 'ece', 'brier', 'epistemic', 'train_loss')


class Progress:
  """Prints a line a round, with the time that is left."""

  def __init__(self, num_rounds: int, enabled: bool):
    self._num_rounds = num_rounds
    self._enabled = enabled
    self._seconds: list[float] = []

  def report(self, row: Mapping[str, Any]) -> None:
    """Prints a round's row."""
    seconds = row.get('train_seconds', 0.0) + row.get('evaluate_seconds', 0.0)
    if row['round'] > 0:
      self._seconds.append(seconds)
    shown = [f'{n} {row[n]:.4g}' for n in _SHOWN if row.get(n, '') != '']
    width = len(str(self._num_rounds))
    self.say(
      f'round {row["round"]:{width}}/{self._num_rounds}  '
      f'{"  ".join(shown)}  {seconds:.1f} s{self._left(row["round"])}'
    )

  def _left(self, rounds_done):
    rounds = self._num_rounds - rounds_done
    if not rounds or not self._seconds:
      return ''
    # Of those played now, not of those before an interruption.
    seconds = round(rounds * sum(self._seconds) / len(self._seconds))
    return f', {datetime.timedelta(seconds=seconds)} left'

  def say(self, text: str) -> None:
    """Prints a line."""
    if self._enabled:
      print(text)


def table(summary: Mapping[str, Any]) -> str:
  """Returns the final scores as a table of two columns."""
  names = {
    'accuracy': 'accuracy',
    'balanced_accuracy': 'balanced accuracy',
    'nll': 'negative log likelihood (nats)',
    'ece': 'expected calibration error',
    'brier': 'Brier score',
    'entropy': 'normalized entropy',
    'epistemic': 'epistemic uncertainty',
    'aleatoric': 'aleatoric uncertainty',
  }
  final = summary['final']
  recall = [name for name in final if name.startswith('recall_class_')]
  names |= {name: name.replace('_', ' ') for name in recall}
  lines = [
    f'{text:32}{final[name]:8.4f}'
    for name, text in names.items()
    if name in final
  ]
  return '\n'.join(lines)
