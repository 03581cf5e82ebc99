"""Storage of the broadcast model and all client updates (FL-SWAG, 5.3).

`analysis.online` pools them again when a client joins, changes or leaves.
"""

import dataclasses
from typing import Any

import numpy as np

from bfl_tf import statistics, training, weights
from bfl_tf.parts import Keep, Outcome, Server


@dataclasses.dataclass(frozen=True)
class StoreUpdates(Server):
  """Stores the updates of a one-shot run; the model does not change."""

  name = 'store_updates'

  def check(self, facts):
    config = facts.config
    facts.need(
      config.num_rounds == 1 and not config.clients_per_round,
      'one round of all clients: set --num_rounds=1, and remove '
      '--clients_per_round',
    )

  def slot(self, model):
    return {'start': model._asdict(), 'updates': {}, 'changes': np.int32(0)}

  def terms(self, update, weight, broadcast):
    return {'updates': Keep(update)}

  def step(self, model, sums, slot, ctx):
    updates = {str(u.client_id): packed(u) for u in sums['updates']}
    start = ctx.broadcast._asdict()
    return Outcome(model, {**slot, 'start': start, 'updates': updates})


def packed(update: statistics.ClientUpdate) -> dict[str, Any]:
  """Returns an update as a nested dict, without client ID, memory and rates."""
  fields = update._asdict()
  del fields['client_id'], fields['memory'], fields['rates']
  return {
    **fields,
    'model': update.model._asdict(),
    'trace': update.trace._asdict(),
  }


def unpacked(client: int, fields: dict[str, Any]) -> statistics.ClientUpdate:
  """Returns the update of a client from the output of `packed`."""
  return statistics.ClientUpdate(
    client_id=client,
    num_examples=int(fields['num_examples']),
    model=weights.Weights(**fields['model']),
    # A checkpoint does not contain empty dicts.
    extras=fields.get('extras', {}),
    trace=training.Trace(**fields['trace']),
  )
