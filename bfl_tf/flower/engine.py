"""Round engine that trains clients on Flower's nodes."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import math

from flwr import app as flwr_app
import numpy as np

from bfl_tf import statistics, training, weights
from bfl_tf.declare import user_code
from bfl_tf.federation import engine
from bfl_tf.federation.experiment import Experiment
from bfl_tf.federation.plan import Plan
from bfl_tf.federation.state import State
from bfl_tf.flower import messages
from bfl_tf.flower import nodes as nodes_lib
from bfl_tf.runs import run_config
from bfl_tf.startup import tf


@dataclasses.dataclass(frozen=True)
class Engine(engine.Engine):
  """Trains the clients of a round in Flower's ClientApps."""

  nodes: nodes_lib.SimulatedNodes | nodes_lib.SuperNodes
  window: int = 2
  run: str = ''
  summary: str = ''
  digests: Mapping[int, str] = dataclasses.field(default_factory=dict)

  def expected_spec(self, plan: Plan) -> training.Result:
    """Returns the spec of an update; a round replaces a memory on a node."""
    spec = plan.result_spec
    if not self.run or not tf.nest.flatten(spec.memory):
      return spec
    return spec._replace(memory={'round': tf.TensorSpec([], tf.int32)})

  def __call__(
    self, experiment: Experiment, state: State, clients: Sequence[int]
  ) -> Iterator[engine.Reply]:
    """See `federation.engine.Engine`."""
    spec, nodes = self.expected_spec(experiment.plan), self.nodes(clients)
    for client in set(clients) - set(nodes):
      yield client, nodes_lib.NodeError('it has no SuperNode')
    seconds = experiment.config.client_timeout or math.inf
    orders = self._orders(experiment, state, nodes)
    for client, reply in nodes_lib.exchange(
      self.nodes.grid, orders, self.window, seconds
    ):
      update = user_code.attempt(_update, reply)
      is_valid = isinstance(update, statistics.ClientUpdate)
      if is_valid and self.run and tf.nest.flatten(spec.memory):
        update = update._replace(memory={'round': np.int32(state.round)})
      yield client, update

  def _orders(self, experiment, state, nodes):
    flags = '\n'.join(run_config.flag_lines(experiment.config))
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
        flags, client, bare, memory, self.run, accepted, self.summary,
        self.digests.get(client, ''),
      )  # fmt: skip
      message = flwr_app.Message(
        messages.pack(order, packed),
        node,
        'train',
        # Far beyond the timeout, so that a reply in time never expires.
        ttl=max(flwr_app.DEFAULT_TTL, 10 * experiment.config.client_timeout),
        group_id=str(state.round),
      )
      yield client, message


def _update(reply) -> statistics.ClientUpdate:
  """Reads a reply; adds the empty dicts that a message omits."""
  tree = messages.unpack(nodes_lib.content(reply))
  empty: dict[str, dict] = {'extras': {}, 'trace': {}, 'memory': {}}
  fields = {**empty, **tree.get('update', {})}
  fields['model'] = weights.Weights(**fields['model'])
  fields['trace'] = training.Trace(**{'report': {}, **fields['trace']})
  return statistics.ClientUpdate(**fields)
