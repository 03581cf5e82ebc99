"""Where clients run.

An engine is a function `(experiment, state, clients) -> arrivals`: it has the
clients of a round trained, anywhere, and yields what comes of each, in any
order. Where clients keep their memories elsewhere it also has a method `like`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from bfl_tf import own, statistics, training
from bfl_tf.federation import client as client_lib
from bfl_tf.federation import experiment as experiment_lib
from bfl_tf.federation import method as method_lib
from bfl_tf.federation import state as state_lib


class Arrival(NamedTuple):
  """What came of one client's training.

  Attributes:
    client: its number.
    update: what it sent, or None.
    memory: by part name, what it is to keep if the update is accepted.
    failure: why there is no update.
  """

  client: int
  update: statistics.ClientUpdate | None
  memory: Mapping[str, Any]
  failure: BaseException | None = None


Engine = Callable[
  [experiment_lib.Experiment, state_lib.State, Sequence[int]],
  Iterator[Arrival],
]


def like(engine: Engine, method: method_lib.Method) -> training.Result:
  """Returns `tf.TensorSpec`s of what arrives, as of `Method.result_like`."""
  of_engine = getattr(engine, 'like', None)
  return of_engine(method) if of_engine else method.result_like


class OtherSideError(ValueError):
  """What clients remember is on nodes and not here, or here and not there."""


def check_memories(state: state_lib.State, like: training.Result) -> None:
  """Refuses clients' memories that are where another engine had them.

  Raises:
    OtherSideError: they are elsewhere.
  """
  # What holds no array leaves nothing in a checkpoint.
  wanted = {name for name, kept in like.memory.items() if tf.nest.flatten(kept)}
  for memory in state.memories.values():
    kept = {name for name, array in memory.items() if tf.nest.flatten(array)}
    if kept != wanted:
      raise OtherSideError(
        'clients of this run remember on the other side: go on with the '
        '--engine and --superlink that it was begun with.'
      )


def local(
  experiment: experiment_lib.Experiment,
  state: state_lib.State,
  clients: Sequence[int],
  change: int = 0,
) -> Iterator[Arrival]:
  """Trains clients on the experiment's workers; the longest begin first."""
  broadcast, dealt = experiment.broadcast(state), experiment.partition

  def work(client):
    epochs = client_lib.epochs(experiment.config, state.round, client)
    return len(dealt[client]) * epochs

  def train(worker, client):
    kept = state.memories.get(client)
    try:
      update, memory = client_lib.train_client(
        experiment.method,
        worker,
        broadcast,
        client,
        dealt[client],
        kept,
        change,
      )
    # Whatever it is, it is this client's alone; an interrupt is no Exception.
    except own.ERRORS as failure:
      return Arrival(client, None, {}, failure)
    return Arrival(client, update, memory)

  longest_first = sorted(clients, key=work, reverse=True)
  return training.in_parallel(experiment.workers, longest_first, train)
