"""The start and every client's update stay in the state (FL-SWAG, 5.3).

What `online.updates` pools again when a client joins, changes or leaves.
"""

import dataclasses
from typing import Any

import numpy as np

from bfl_tf import posteriors, statistics, training
from bfl_tf import weights as weights_lib
from bfl_tf.server.stage import Stage


@dataclasses.dataclass(frozen=True)
class Keep(Stage):
  """Keeps a one-shot run's messages; the model is left as it is."""

  num_rounds: int
  clients_per_round: int

  name = 'keep'
  statistics = (posteriors.Updates(),)

  def __post_init__(self):
    if self.num_rounds != 1:
      raise ValueError(
        f'--refine=keep is for one-shot runs, whose updates all begin at one '
        f'start: set --num_rounds=1 in place of {self.num_rounds}.'
      )
    if self.clients_per_round:
      raise ValueError(
        f'--refine=keep is for runs that ask all clients, who may then leave '
        f'or change: leave --clients_per_round={self.clients_per_round} out.'
      )

  def init(self, model):
    """Nothing is kept yet; so many changes were made after the run."""
    return {'start': model._asdict(), 'updates': {}, 'changes': np.int32(0)}

  def __call__(self, state, reference, pooled, statistics, seed):
    sent = statistics[posteriors.Updates()].updates
    slot = {
      'start': reference._asdict(),
      'updates': {str(update.client_id): packed(update) for update in sent},
      'changes': state.slots[self.name]['changes'],
    }
    return state._replace(slots={**state.slots, self.name: slot}), {}


def packed(update: statistics.ClientUpdate) -> dict[str, Any]:
  """Returns an update as a checkpoint holds it; without number and memory."""
  fields = update._asdict()
  del fields['client_id'], fields['memory']
  return {
    **fields,
    'model': update.model._asdict(),
    'trace': update.trace._asdict(),
  }


def unpacked(client: int, fields: dict[str, Any]) -> statistics.ClientUpdate:
  """Returns the update of a client that `packed` made fields of."""
  return statistics.ClientUpdate(
    client_id=client,
    num_examples=int(fields['num_examples']),
    model=weights_lib.Weights(**fields['model']),
    # What is empty leaves nothing in a checkpoint.
    extras=fields.get('extras', {}),
    trace=training.Trace(**fields['trace']),
  )
