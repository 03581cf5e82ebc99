"""A client joins, changes or leaves a one-shot run (FL-SWAG, section 5.3).

The run's state has the start and each client's update (`--refine=keep`). Who
joins or changes trains from that start, the only one to do so; who leaves loses
its row of every statistic. Then all that is there is reduced again, and the
server's stages follow as in the run: the order in which clients came changes
nothing, and one that came and went was never there, bit for bit.

References:
  M. Makni. Deriving FL-SWAG as a one-shot method. 2022, section 5.3.
"""

from collections.abc import Mapping
import dataclasses

import numpy as np

from bfl_tf import registry, server, statistics
from bfl_tf import weights as weights_lib
from bfl_tf.federation import engine as engine_lib
from bfl_tf.federation import experiment as experiment_lib
from bfl_tf.federation import loop
from bfl_tf.federation import state as state_lib

KINDS = ('add', 'replace', 'remove')


@dataclasses.dataclass(frozen=True)
class Change:
  """What happens to one client of the run's split.

  Attributes:
    kind: one of `KINDS`.
    client: its number.
  """

  kind: str
  client: int

  def __post_init__(self):
    registry.check_choice('kind', self.kind, KINDS)

  def check(self, members: Mapping[int, object], num_clients: int) -> None:
    """Raises a ValueError unless the change can be made to these members."""
    flag = f'--{self.kind}={self.client}'
    if not 0 <= self.client < num_clients:
      raise ValueError(f'{flag}: the run has clients 0 to {num_clients - 1}.')
    if (self.client in members) == (self.kind == 'add'):
      there = 'there already' if self.kind == 'add' else 'not there'
      raise ValueError(
        f'{flag}: that client is {there}; members are '
        f'{", ".join(map(str, sorted(members)))}.'
      )
    if self.kind == 'remove' and len(members) == 1:
      raise ValueError(f'{flag}: that client is the last one.')


def members(state: state_lib.State) -> dict[int, statistics.ClientUpdate]:
  """Returns the updates that a state keeps, by client.

  Raises:
    ValueError: it keeps none.
  """
  if 'keep' not in state.slots:
    raise ValueError('the run kept no updates: play it with --refine=keep.')
  updates = state.slots['keep'].get('updates', {})
  return {int(k): server.unpacked(int(k), v) for k, v in updates.items()}


def beginning(
  experiment: experiment_lib.Experiment, state: state_lib.State
) -> state_lib.State:
  """Returns the state before the round of the updates that a state keeps."""
  start = weights_lib.Weights(**state.slots['keep']['start'])
  fresh = state_lib.fresh_slots(experiment.method.stages, start)
  return state_lib.State(0, start, fresh, {})


def apply(
  experiment: experiment_lib.Experiment,
  state: state_lib.State,
  change: Change,
) -> state_lib.Round:
  """Makes a change and pools again; `state` is still good if that fails.

  Args:
    experiment: of the run.
    state: after the run, or after earlier changes.
    change: what to do.

  Returns:
    What a round returns; `bytes_up` and `bytes_down` are of this change alone.

  Raises:
    ValueError: the change cannot be made, or an update was refused: that of who
      trains, or what a member had sent.
    StoppedError: fewer than `--min_clients` would be left.
  """
  kept = members(state)
  change.check(kept, experiment.config.num_clients)
  engine_lib.check_memories(state, experiment.method.result_spec)
  begin = beginning(experiment, state)
  number = int(state.slots['keep']['changes']) + 1
  played = loop.federated_round(
    experiment, begin, _Replay(state, kept, change, number)
  )
  slots, info, found = played.state.slots, played.info, members(played.state)
  newcomer = {change.client} if change.kind != 'remove' else set()
  if set(found) != set(kept) - {change.client} | newcomer:
    raise ValueError(
      f'--{change.kind}={change.client}: an update was refused '
      f'({info["left_out_reasons"]}); nothing has changed.'
    )
  info['bytes_up'] = sum(found[client].num_bytes for client in newcomer)
  info['bytes_down'] = experiment.broadcast(begin).num_bytes if newcomer else 0
  slot = {**slots['keep'], 'changes': np.int32(number)}
  return played._replace(
    state=played.state._replace(slots={**slots, 'keep': slot})
  )


@dataclasses.dataclass(frozen=True)
class _Replay(engine_lib.Engine):
  """Replays the updates that the state keeps; trains the client that changes.

  Seeds contain the number of the change: a changed client draws anew.
  """

  before: state_lib.State
  kept: dict[int, statistics.ClientUpdate]
  change: Change
  number: int

  def __call__(self, experiment, state, clients):
    changed = self.change.client
    for client, update in self.kept.items():
      if client != changed:
        memory = self.before.memories.get(client, {})
        yield client, update._replace(memory=memory)
    if self.change.kind != 'remove':
      train = engine_lib.Local(self.number)
      yield from train(experiment, state, [changed])
