"""Weighting and summation of a round's updates, in one pass."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bfl_tf import parts, statistics
from bfl_tf.federation import stopping
from bfl_tf.weights import Weights


class Reduction:
  """Weighs the accepted updates and sums the terms of parts as they arrive."""

  def __init__(
    self,
    servers: Mapping[str, parts.Server],
    weighting: Any,
    broadcast: Weights,
    of_weighting: str = 'the weighting',
  ):
    """Begins a round.

    Args:
      servers: Parts that have terms, by their name in errors.
    """
    self._parts, self._weighting = servers, weighting
    self._of_weighting, self._broadcast = of_weighting, broadcast
    self._sums: dict[str, statistics.Sums] = {}
    self._waiting: list[statistics.ClientUpdate] = []
    self._guards, self._total = 0, 0.0
    self.traces: list[Any] = []
    self.memories: dict[int, Any] = {}
    self.num_bytes = 0

  def add(self, update: statistics.ClientUpdate) -> str | None:
    """Accumulates an accepted update, unless one of its terms is not finite.

    The update is kept only if the weighting or a term needs it.
    """
    sent = update._replace(memory={})
    weight, guards = 1.0, 0
    if not self._weighting.needs_all:
      with stopping.wrap_errors(self._of_weighting):
        weight, guards = self._weighting.weigh(sent, self._broadcast)
      stopping.check_weight(self._of_weighting, update.client_id, weight)
    shares = self._shares(sent, weight)
    for name, share in shares.items():
      # The sum of a vector is not finite if one of its elements is not.
      if not all(np.isfinite(v.sum()) for v in share.vectors.values()):
        return f'its terms for {name} are not finite'
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

  def finish(self) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Ends the round. Without privacy, it needs at least one update.

    Returns:
      Argument `sums` of `Server.step`, by name of the part in errors; empty
      without an update. Columns of `metrics.csv`.
    """
    if self._waiting:
      updates = sorted(self._waiting, key=lambda update: update.client_id)
      with stopping.wrap_errors(self._of_weighting):
        weights, self._guards = self._weighting.weigh_all(
          updates, self._broadcast
        )
        weighed = list(zip(updates, weights, strict=True))
      for update, weight in weighed:
        stopping.check_weight(self._of_weighting, update.client_id, weight)
        self._merge(self._shares(update, weight), weight)
    if self.traces and not self._total > 0:
      raise stopping.ComponentError(
        f'{self._of_weighting} gave all clients weight 0.'
      )
    sums = {name: statistics.values(own) for name, own in self._sums.items()}
    return sums, {'weight_guards': self._guards}

  def _shares(self, update, weight) -> dict[str, statistics.Sums]:
    """Returns the sums of one client, by name of the part."""
    shares = {}
    for name, part in self._parts.items():
      with (
        np.errstate(over='ignore', invalid='ignore', divide='ignore'),
        stopping.wrap_errors(name),
      ):
        shares[name] = statistics.collected(
          part, update, weight, self._broadcast
        )
    return shares

  def _merge(self, shares, weight):
    self._total += weight
    for name, share in shares.items():
      known = self._sums.get(name)
      self._sums[name] = statistics.merge(known, share) if known else share
