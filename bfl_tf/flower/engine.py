"""Clients train on Flower's nodes: an engine for the round loop."""

from collections.abc import Iterator, Sequence
import dataclasses
import math

from flwr import app as flwr_app
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


@dataclasses.dataclass(frozen=True)
class Engine:
  """Has the clients of a round trained by ClientApps.

  Attributes:
    nodes: who plays which client.
    window: orders that may be out at a time.
    run: names the run to nodes, which keep what their clients remember; where
      it is nothing the server does, as a simulation needs to be resumed.
    told: of nodes with files of their own, see `messages.Order`.
  """

  nodes: nodes_lib.Simulated | nodes_lib.Numbered
  window: int = 2
  run: str = ''
  told: str = ''

  def like(self, method: method_lib.Method) -> training.Result:
    """`tf.TensorSpec`s of what arrives, as of `Method.result_like`."""
    like = method.result_like
    if not self.run or not tf.nest.flatten(like.memory):
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
    like = self.like(method)
    engine_lib.check_memories(state, like)
    for client in set(clients) - set(nodes):
      yield _failed(client, nodes_lib.NodeError('it has no SuperNode'))
    seconds = experiment.config.client_timeout or math.inf
    orders = self._orders(experiment, state, nodes)
    for client, reply in nodes_lib.exchange(
      self.nodes.grid, orders, self.window, seconds
    ):
      try:
        tree = messages.unpack(nodes_lib.content(reply))
        update, memory = _update(tree), tree.get('memory', {})
      # Whatever somebody sends, it is this client's alone.
      except Exception as failure:
        yield _failed(client, failure)
        continue
      if self.run and tf.nest.flatten(like.memory):
        memory = {'round': np.int32(state.round)}
      yield engine_lib.Arrival(client, update, memory)

  def _orders(self, experiment, state, nodes):
    """Yields what goes out, one made at a time."""
    flags = '\n'.join(flags_file.flag_lines(experiment.config))
    broadcast = experiment.broadcast(state)
    packed = messages.pack_arrays(
      {'broadcast': {'model': broadcast.model, 'shared': broadcast.shared}}
    )
    bare = broadcast._replace(model={}, shared={})
    for client, node in nodes.items():
      memory, accepted = state.memories.get(client, {}), -1
      if self.run:
        memory, accepted = {}, int(memory.get('round', -1))
      order = messages.Order(
        flags, client, bare, memory, self.run, accepted, self.told
      )
      message = flwr_app.Message(
        messages.pack(order, packed),
        node,
        'train',
        # Longer than we wait: what came in time must not lapse meanwhile.
        ttl=max(flwr_app.DEFAULT_TTL, 10 * experiment.config.client_timeout),
        group_id=str(state.round),
      )
      yield client, message


def _update(tree) -> statistics.ClientUpdate:
  """Of branches without a leaf nothing travels."""
  said = {'extras': {}, 'trace': {}, **tree.get('update', {})}
  said['model'] = weights_lib.Weights(**said['model'])
  said['trace'] = training.Trace(**{'report': {}, **said['trace']})
  return statistics.ClientUpdate(**said)


def _failed(client, failure) -> engine_lib.Arrival:
  return engine_lib.Arrival(client, None, {}, failure)
