"""Clients train on Flower's nodes: an engine for the round loop."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import dataclasses
import math
from typing import NamedTuple

from flwr import app as flwr_app
from flwr import serverapp
import numpy as np
import tensorflow as tf

from bfl_tf import statistics, training
from bfl_tf import weights as weights_lib
from bfl_tf.federation import engine as engine_lib
from bfl_tf.federation import experiment as experiment_lib
from bfl_tf.federation import method as method_lib
from bfl_tf.federation import state as state_lib
from bfl_tf.flower import messages
from bfl_tf.flower import nodes as nodes_lib
from bfl_tf.runs import flags_file

Nodes = Callable[[Sequence[int]], Mapping[int, int]]


@dataclasses.dataclass(frozen=True)
class Engine:
  """Has the clients of a round trained by ClientApps.

  Attributes:
    grid: Flower's.
    nodes: from clients' numbers to the ids of the nodes that play them, by
      number; of who has one.
    window: orders that may be out at a time.
    keeps_memories: whether the server keeps what clients remember, as a
      simulation needs to be resumed; otherwise nodes do.
    run: names the run to nodes that keep memories.
    told: of nodes with files of their own, see `messages.Order`.
    poll_seconds: between two looks for replies.
  """

  grid: serverapp.Grid
  nodes: Nodes
  window: int = 2
  keeps_memories: bool = True
  run: str = ''
  told: str = ''
  poll_seconds: float = 0.05

  def like(self, method: method_lib.Method) -> training.Result:
    """`tf.TensorSpec`s of what arrives, as of `Method.result_like`."""
    like = method.result_like
    if self.keeps_memories or not tf.nest.flatten(like.memory):
      return like
    return like._replace(memory={'round': tf.TensorSpec([], tf.int32)})

  def __call__(
    self,
    experiment: experiment_lib.Experiment,
    state: state_lib.State,
    clients: Sequence[int],
  ) -> Iterator[engine_lib.Arrival]:
    """See `federation.engine.Engine`."""
    method, nodes = experiment.method, self.nodes(clients)
    wanted = _Wanted.of(method, self.like(method), state.round)
    engine_lib.check_memories(state, wanted.like)
    for client in set(clients) - set(nodes):
      yield _failed(client, nodes_lib.NodeError('it has no SuperNode'))
    orders = self._orders(experiment, state, nodes)
    for client, reply in nodes_lib.exchange(
      self.grid, orders, self.window, self.poll_seconds
    ):
      yield self._arrival(client, reply, wanted)

  def _orders(self, experiment, state, nodes):
    """Yields what goes out, one made at a time."""
    seconds = experiment.config.client_timeout
    flags = '\n'.join(flags_file.flag_lines(experiment.config))
    broadcast = experiment.broadcast(state)
    packed = messages.pack_arrays(
      {'broadcast': {'model': broadcast.model, 'shared': broadcast.shared}}
    )
    bare = broadcast._replace(model={}, shared={})
    for client, node in nodes.items():
      memory = state.memories.get(client, {})
      brought, accepted = memory, -1
      if not self.keeps_memories:
        brought, accepted = {}, int(memory.get('round', -1))
      order = messages.Order(
        flags, client, bare, brought, self.keeps_memories, accepted, self.run,
        self.told,
      )  # fmt: skip
      message = flwr_app.Message(
        messages.pack(order, packed),
        node,
        'train',
        # Longer than we wait: what came in time must not lapse meanwhile.
        ttl=max(flwr_app.DEFAULT_TTL, 10 * seconds),
        group_id=str(state.round),
      )
      yield nodes_lib.Errand(client, message, seconds or math.inf)

  def _arrival(self, client, reply, wanted) -> engine_lib.Arrival:
    try:
      tree = messages.unpack(nodes_lib.content(reply), wanted.leaves)
      update, memory = _update(tree), tree.get('memory', {})
    # Whatever somebody sends, it is this client's alone.
    except Exception as failure:
      return _failed(client, failure)
    if not self.keeps_memories:
      there = bool(wanted.like.memory)
      memory = {'round': np.int32(wanted.round)} if there else {}
    return engine_lib.Arrival(client, update, memory)


class _Wanted(NamedTuple):
  """What a good reply is like."""

  round: int
  like: training.Result
  leaves: Mapping[str, int | type]

  @classmethod
  def of(cls, method, like, round_index) -> '_Wanted':
    ranks = (getattr(part, 'rank', 0) for part in method.parts)
    leaves = messages.wanted(method.result_like, max(ranks, default=0))
    return cls(round_index, like, leaves)


def _update(tree) -> statistics.ClientUpdate:
  """Of branches without a leaf nothing travels."""
  said = {'extras': {}, 'trace': {}, **tree.get('update', {})}
  try:
    said['model'] = weights_lib.Weights(**said.get('model', {}))
    said['trace'] = training.Trace(**{'report': {}, **said['trace']})
    return statistics.ClientUpdate(**said)
  except TypeError as error:
    raise ValueError(f'it is no update: {error}') from error


def _failed(client, failure) -> engine_lib.Arrival:
  return engine_lib.Arrival(client, None, {}, failure)
