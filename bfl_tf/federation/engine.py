"""Engines, which train the clients of a round."""

import abc
from collections.abc import Iterator, Sequence
import itertools

from bfl_tf import statistics, training
from bfl_tf.declare import user_code
from bfl_tf.federation import client as client_lib
from bfl_tf.federation.experiment import Experiment
from bfl_tf.federation.plan import Plan
from bfl_tf.federation.state import State
from bfl_tf.startup import tf

# The number of a client, and its update or the error that it raised.
Reply = tuple[int, statistics.ClientUpdate | BaseException]


class Engine(abc.ABC):
  """Base of engines, which train the clients of a round."""

  @abc.abstractmethod
  def __call__(
    self, experiment: Experiment, state: State, clients: Sequence[int]
  ) -> Iterator[Reply]:
    """Yields the reply of each client, in any order."""

  def expected_spec(self, plan: Plan) -> training.Result:
    """Returns `tf.TensorSpec`s of an update, as in `Plan.result_spec`.

    An engine whose clients keep their memories elsewhere overrides it.
    """
    return plan.result_spec


class OtherSideError(ValueError):
  """Clients' memories are stored on nodes and not here, or vice versa."""


def check_memories(state: State, spec: training.Result) -> None:
  """Rejects memories of clients that another engine stored."""
  # A checkpoint does not contain memories without arrays.
  expected = {
    name for name, array in spec.memory.items() if tf.nest.flatten(array)
  }
  # All memories have the same arrays.
  for memory in itertools.islice(state.memories.values(), 1):
    stored = {name for name, array in memory.items() if tf.nest.flatten(array)}
    if stored != expected:
      raise OtherSideError(
        "another engine stored the memories of this run's clients: continue "
        'with the --engine and --superlink of its first round.'
      )


class Local(Engine):
  """Trains clients on the workers of the experiment, the longest first."""

  def __init__(self, change: int = 0):
    """Makes the engine; `change` as in `client.draw_name`."""
    self._change = change

  def __call__(self, experiment, state, clients):
    broadcast, partition = experiment.broadcast(state), experiment.partition

    def work(client):
      size = len(partition[client])
      return client_lib.work(experiment.plan, state.round, client, size).steps

    def attempt(function, *arguments):
      # With --debug, an error or the end of a debugger ends the run.
      if experiment.config.debug:
        return function(*arguments)
      return user_code.attempt(function, *arguments)

    def train(worker, client):
      return client, attempt(
        client_lib.train_client,
        experiment.plan,
        worker,
        broadcast,
        client,
        partition[client],
        state.memories.get(client),
        self._change,
      )

    longest_first = sorted(clients, key=work, reverse=True)
    return training.in_parallel(experiment.workers, longest_first, train)
