"""Storage of the broadcast model and all client updates (FL-SWAG, 5.3).

`analysis.online` pools them again when a client joins, changes or leaves.
"""

import dataclasses
from typing import Any

import numpy as np

from bfl_tf import statistics, training, weights
from bfl_tf.server import posteriors
from bfl_tf.server.stage import Stage


@dataclasses.dataclass(frozen=True)
class StoreUpdates(Stage):
  """Stores the updates of a one-shot run; the model does not change."""

  num_rounds: int
  clients_per_round: int

  name = 'store_updates'
  statistics = (posteriors.Updates(),)

  def __post_init__(self):
    if self.num_rounds != 1 or self.clients_per_round:
      raise ValueError(
        '--refine=store_updates needs one round of all clients: set '
        '--num_rounds=1, and remove --clients_per_round.'
      )

  def init(self, model):
    """Returns a slot without updates and with 0 changes after the run."""
    return {'start': model._asdict(), 'updates': {}, 'changes': np.int32(0)}

  def __call__(self, state, reference, pooled, statistics, seed):
    sent = statistics[posteriors.Updates()].updates
    slot = {
      'start': reference._asdict(),
      'updates': {str(update.client_id): packed(update) for update in sent},
      'changes': state.slots[self.name]['changes'],
    }
    return state._replace(slots={self.name: slot}), {}


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
