"""Whether rounds undo what the rounds before them taught."""

from collections.abc import Mapping, Sequence
import math
from typing import Any, NamedTuple

# Of what the best round gained over chance, what is left of it at least.
_KEPT = 0.25
# A gain below it may be luck.
_LEAST_GAIN = 0.1


class Loss(NamedTuple):
  """What was lost.

  Attributes:
    round: in which it was found first.
    accuracy: then; NaN of a model that ran away.
    best_round: of those before.
    best: its accuracy.
  """

  round: int
  accuracy: float
  best_round: int
  best: float


def first_loss(rows: Sequence[Mapping[str, Any]], chance: float) -> Loss | None:
  """Returns the first round that has lost what an earlier one had learned.

  Args:
    rows: of `metrics.csv`; those that were not scored count for nothing.
    chance: accuracy of who knows no example, the largest class's share.
  """
  best_round, best = 0, -math.inf
  for row in rows:
    if row.get('accuracy', '') == '':
      continue
    number, now = int(row['round']), float(row['accuracy'])
    gain = best - chance
    # Not: less than. A NaN is a loss.
    if gain >= _LEAST_GAIN and not now - chance >= _KEPT * gain:
      return Loss(number, now, best_round, best)
    if now > best:
      best_round, best = number, now
  return None
