"""A client joins, changes or leaves a one-shot run (FL-SWAG, section 5.3).

The state of the run contains the start and the update of each client
(`--server_parts=store_updates`). A client that joins or changes trains from
that start. A client that leaves loses its entry in every statistic. All
remaining updates are then summed again, and the server parts follow as in the
run. The result does not depend on the order of the changes. If a client joins
and leaves, the result is bit-for-bit identical to that without it.

References:
  M. Makni. Deriving FL-SWAG as a one-shot method. 2022, section 5.3.
"""

from collections.abc import Mapping
import dataclasses

import numpy as np

from bfl_tf import server, statistics, weights
from bfl_tf.federation import engine, loop
from bfl_tf.federation import state as state_lib
from bfl_tf.federation.experiment import Experiment

KINDS = ('add', 'replace', 'remove')


@dataclasses.dataclass(frozen=True)
class Change:
  """A client that joins, changes or leaves."""

  kind: str
  client: int

  def check(self, members: Mapping[int, object], num_clients: int) -> None:
    """Raises a ValueError unless the change can be made to these members."""
    possible = {*members}
    if self.kind == 'add':
      possible = {*range(num_clients)} - {*members}
    is_last = self.kind == 'remove' and len(members) == 1
    if is_last or self.client not in possible:
      known = ', '.join(map(str, sorted(possible)))
      raise ValueError(
        f'--{self.kind}={self.client}: choose one of the clients {known}; the '
        'last client cannot be removed.'
      )


def members(state: state_lib.State) -> dict[int, statistics.ClientUpdate]:
  """Returns the stored updates of a state, by client."""
  if 'store_updates' not in state.slots:
    raise ValueError(
      'the run stored no updates: run it with --server_parts=store_updates.'
    )
  updates = state.slots['store_updates'].get('updates', {})
  return {int(k): server.unpacked(int(k), v) for k, v in updates.items()}


def apply(
  experiment: Experiment, state: state_lib.State, change: Change
) -> state_lib.Round:
  """Makes a change and pools again; an error leaves `state` unchanged.

  Returns:
    Result of a round; `bytes_up` and `bytes_down` count this change alone.
  """
  updates = members(state)
  change.check(updates, experiment.config.num_clients)
  engine.check_memories(state, experiment.plan.result_spec)
  # The state before the round whose updates are stored.
  start = weights.Weights(**state.slots['store_updates']['start'])
  fresh = loop.fresh_slots(experiment.plan, start)
  begin = state_lib.State(0, start, fresh, {})
  number = int(state.slots['store_updates']['changes']) + 1
  result = loop.federated_round(
    experiment, begin, _Replay(state, updates, change, number)
  )
  info, new_updates = result.info, members(result.state)
  newcomer = {change.client} if change.kind != 'remove' else set()
  if set(new_updates) != set(updates) - {change.client} | newcomer:
    raise ValueError(
      f'--{change.kind}={change.client}: an update was rejected '
      f'({info["rejected_reasons"]}). Nothing has changed.'
    )
  info['bytes_up'] = sum(new_updates[client].num_bytes for client in newcomer)
  info['bytes_down'] = experiment.broadcast(begin).num_bytes if newcomer else 0
  slots = result.state.slots
  slot = {**slots['store_updates'], 'changes': np.int32(number)}
  new_state = result.state._replace(slots={**slots, 'store_updates': slot})
  return result._replace(state=new_state)


@dataclasses.dataclass(frozen=True)
class _Replay(engine.Engine):
  """Replays the stored updates; trains the client that joins or changes.

  Seeds contain the number of the change, so that each training has new draws.
  """

  before: state_lib.State
  updates: dict[int, statistics.ClientUpdate]
  change: Change
  number: int

  def __call__(self, experiment, state, clients):
    changed = self.change.client
    for client, update in self.updates.items():
      if client != changed:
        memory = self.before.memories.get(client, {})
        yield client, update._replace(memory=memory)
    if self.change.kind != 'remove':
      train = engine.Local(self.number)
      yield from train(experiment, state, [changed])
