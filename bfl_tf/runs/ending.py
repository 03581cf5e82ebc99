"""What a finished run should have, and what can still be made anew of it."""

import math
from typing import Any

from absl import logging

from bfl_tf.runs import checkpoints
from bfl_tf.runs import directory as records

# Made when a run begins or goes on, or of rows and predictions at its end.
_MADE_ANEW = ('flags.txt', 'task.json', 'partition.csv', 'plots', 'summary')


class Ending:
  """The end of a run: whether it is whole, and from where it can be mended."""

  def __init__(
    self,
    directory: records.RunDirectory,
    num_rounds: int,
    with_figures: bool,
  ):
    """Looks at a run's directory.

    Args:
      directory: where it is.
      num_rounds: after which it ends.
      with_figures: whether who asks would draw them anew; who would not does
        not miss them.
    """
    self._directory = directory
    self._num_rounds = num_rounds
    self._with_figures = with_figures

  def summary(self) -> dict[str, Any] | None:
    """Returns the summary of a run that there is nothing left to do for.

    None of an unfinished one, and of one that lost what can be made anew. What
    cannot is named in a warning.
    """
    summary = self._directory.summary()
    if summary is None:
      return None
    lost = self._lost(summary)
    obstacle = self._obstacle(lost) if lost else None
    if obstacle:
      logging.warning(
        '%s: %s is missing or damaged, and %s.',
        self._directory.path,
        ', '.join(lost),
        obstacle,
      )
    return None if lost and not obstacle else summary

  def round_before(self, lost: list[str]) -> int:
    """Returns the last round of which a checkpoint can make what is lost."""
    made_anew = all(name.startswith(_MADE_ANEW) for name in lost)
    return self._num_rounds - (0 if made_anew else 1)

  def damaged(self) -> list[str]:
    """Returns what was written and is missing, or is not as it was."""
    return [
      name
      for name in self._directory.damaged()
      if self._with_figures or not name.startswith('plots')
    ]

  def _lost(self, summary):
    """What a finished run should have and has not, by name."""
    found = self.damaged()
    if math.isnan(summary['final'].get('nll', math.nan)):
      found = [name for name in found if name != 'predictions.npz']
    if len(self._directory.whole_rows()) <= self._num_rounds:
      found.append('metrics.csv')
    newest = checkpoints.restore(self._directory.checkpoints)
    if newest is None or newest.round < self._num_rounds:
      found.append(f'checkpoints/state-{self._num_rounds}')
    return list(dict.fromkeys(found))

  def _obstacle(self, lost):
    """Why what is lost cannot be made anew, or None."""
    if not self._directory.can_be_written():
      return 'the directory cannot be written'
    before = self.round_before(lost)
    if checkpoints.restore(self._directory.checkpoints, before) is None:
      return 'no checkpoint is left to make it from'
    return None
