"""Weighting and summation of a round's updates, in one pass."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from bfl_tf import statistics as statistics_lib
from bfl_tf.federation import stopping
from bfl_tf.weights import Weights


class Reduction:
  """Weighs the accepted updates and sums every statistic as they arrive."""

  def __init__(
    self,
    rule: Any,
    weighting: Any,
    statistics: Iterable[statistics_lib.Statistic],
    reference: Weights,
    components: tuple[str, str] = ('the rule', 'the weighting'),
  ):
    """Begins a round; `components` name rule and weighting in errors."""
    # Statistics are frozen dataclasses: a dict holds equal ones once.
    self._sums: dict[Any, Any] = dict.fromkeys([rule, *statistics])
    self._rule, self._weighting = rule, weighting
    self._of_rule, self._of_weighting = components
    self._reference = reference
    self._waiting: list[statistics_lib.ClientUpdate] = []
    self._guards, self._total = 0, 0.0
    self.traces: list[Any] = []
    self.memories: dict[int, Any] = {}
    self.num_bytes = 0

  def add(self, update: statistics_lib.ClientUpdate) -> str | None:
    """Accumulates an accepted update, unless one of its terms is not finite.

    The update is kept only if the weighting or a statistic needs it.
    """
    sent = update._replace(memory={})
    weight, guards = 1.0, 0
    if not self._weighting.needs_all:
      with stopping.wrap_errors(self._of_weighting):
        weight, guards = self._weighting.weigh(sent, self._reference)
      stopping.check_weight(self._of_weighting, update.client_id, weight)
    shares = self._shares(sent, weight)
    for statistic, share in shares.items():
      # The sum of a vector is not finite if one of its elements is not.
      if not all(np.isfinite(v.sum()) for v in share.vectors.values()):
        return f'its terms for {self._of(statistic)} are not finite'
    self.traces.append(update.trace)
    self.num_bytes += update.num_bytes
    if update.memory:
      self.memories[update.client_id] = update.memory
    if self._weighting.needs_all:
      self._waiting.append(sent)
    else:
      self._guards += guards
      self._merge(shares, weight)
    return None

  def finish(self) -> tuple[Weights, dict[Any, Any], dict[str, Any]]:
    """Ends the round. Without privacy, it needs at least one update.

    Returns:
      pooled: Result of the rule.
      results: Results by statistic, including the rule's.
      info: Columns of `metrics.csv`.

    Raises:
      stopping.ComponentError: All weights are 0, a weight is negative or not
        finite, or a component raises. The last two also apply to `add`.
    """
    if self._waiting:
      updates = sorted(self._waiting, key=lambda update: update.client_id)
      with stopping.wrap_errors(self._of_weighting):
        weights, self._guards = self._weighting.weigh_all(
          updates, self._reference
        )
        weighed = list(zip(updates, weights, strict=True))
      for update, weight in weighed:
        stopping.check_weight(self._of_weighting, update.client_id, weight)
        self._merge(self._shares(update, weight), weight)
    if self.traces and not self._total > 0:
      raise stopping.ComponentError(
        f'{self._of_weighting} gave all clients weight 0.'
      )
    results: dict[Any, Any] = {}
    info: dict[str, Any] = {'weight_guards': self._guards}
    for statistic, sums in self._sums.items():
      # Values that are not finite are rejected later, with the flag's name.
      with (
        np.errstate(invalid='ignore', divide='ignore'),
        stopping.wrap_errors(self._of(statistic)),
      ):
        results[statistic], more = statistic.finalize(sums, self._reference)
        stopping.check_columns(self._of(statistic), more)
        info.update(more)
    return results[self._rule], results, info

  def _of(self, statistic):
    if statistic == self._rule:
      return self._of_rule
    return f'the statistic {statistic}'

  def _shares(self, update, weight) -> dict[Any, statistics_lib.Sums]:
    """Returns the sums of one client, by statistic."""
    shares = {}
    for statistic in self._sums:
      with (
        np.errstate(over='ignore', invalid='ignore', divide='ignore'),
        stopping.wrap_errors(self._of(statistic)),
      ):
        shares[statistic] = statistic.accumulate(
          update, weight, self._reference
        )
    return shares

  def _merge(self, shares, weight):
    self._total += weight
    for statistic, share in shares.items():
      sums = self._sums[statistic]
      self._sums[statistic] = (
        share if sums is None else statistics_lib.merge(sums, share)
      )
