"""Training of one client, on any machine.

A task depends only on the plan, the broadcast, and the client's number,
examples and memory. It is therefore bit-for-bit identical on all machines.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bfl_tf import seeds, statistics, training, weights
from bfl_tf.federation.plan import Plan
from bfl_tf.startup import tf


class Broadcast(NamedTuple):
  """The message from the server to every client of a round.

  Attributes:
    shared: Arrays for client parts, as returned by `Server.shared`.
    num_examples: Number of examples of all clients, N; 0 under privacy.
  """

  round: int
  model: weights.Weights
  shared: Mapping[str, Any]
  num_examples: int

  @property
  def num_bytes(self) -> int:
    """Size of the message in bytes."""
    shared = map(np.asarray, tf.nest.flatten(self.shared))
    return self.model.num_bytes + sum(array.nbytes for array in shared)


class Work(NamedTuple):
  """The work of one client in a round, which the server can compute.

  Attributes:
    rates: `[steps]` float64, learning rate of each step.
  """

  num_examples: int
  rates: np.ndarray

  @property
  def steps(self) -> int:
    """Number of steps."""
    return len(self.rates)


def draw_name(
  round_index: int, client: int, change: int = 0
) -> tuple[int, ...]:
  """Returns the indices that name the random draws of a client's training.

  Args:
    change: Number of the change, from 1, for a client that joins or changes
      after the run, so that it draws new random numbers; otherwise 0.
  """
  return (round_index, client, change) if change else (round_index, client)


def client_task(
  plan: Plan,
  broadcast: Broadcast,
  client: int,
  indices: np.ndarray,
  memory: Mapping[str, Any] | None = None,
  change: int = 0,
) -> training.ClientTask:
  """Returns the training task of a client in a round.

  Args:
    indices: `[num_examples]` int32 into the training data.
  """
  config, round_index = plan.config, broadcast.round
  memory = memory or {}
  rates = work(plan, round_index, client, len(indices)).rates
  return training.ClientTask(
    start=broadcast.model,
    indices=indices,
    rates=rates.astype(np.float32),
    seed=seeds.named(
      config.seed, 'local_training', *draw_name(round_index, client, change)
    ),
    shared=broadcast.shared,
    # A checkpoint does not contain memories without arrays.
    memory={**plan.fresh_memory(broadcast.model, memory), **memory},
    other_examples=np.int32(
      plan.objective.other_examples(len(indices), broadcast.num_examples)
    ),
    kl_weight=plan.objective.kl_weight(round_index),
    round=np.int32(round_index),
    all_examples=np.int32(broadcast.num_examples),
  )


def work(plan: Plan, round_index: int, client: int, num_examples: int) -> Work:
  """Returns the work of a client with this number of examples in a round."""
  config, schedule = plan.config, plan.schedule
  batches = -(-num_examples // config.batch_size)
  steps = config.local_steps or batches * _epochs(plan, round_index, client)
  # Personalized models have the rate of the last round.
  of_round = min(round_index, config.num_rounds - 1), config.num_rounds
  rate = schedule.rate(config.client_learning_rate, *of_round)
  return Work(num_examples, rate * schedule.factors(steps, batches, *of_round))


def train_client(
  plan: Plan,
  worker: training.Worker,
  broadcast: Broadcast,
  client: int,
  indices: np.ndarray,
  memory: Mapping[str, Any] | None = None,
  change: int = 0,
) -> statistics.ClientUpdate:
  """Trains a client and applies its attacks; arguments as in `client_task`."""
  work = client_task(plan, broadcast, client, indices, memory, change)
  attacks, y = plan.attacks_of(client), worker.labels
  for attack in attacks:
    y = attack.labels(y, worker.model.output_shape[-1])
  result = worker.train(work, y=None if y is worker.labels else y)
  model = result.model
  for attack in attacks:
    name = f'attack_{attack.name}'
    draw = draw_name(broadcast.round, client, change)
    generator = seeds.generator(plan.config.seed, name, *draw)
    model = attack.send(model, work.start, generator)
  return statistics.ClientUpdate(
    client_id=client,
    num_examples=len(work.indices),
    model=model,
    extras=result.extras,
    trace=result.trace,
    memory=result.memory,
  )


def _epochs(plan: Plan, round_index: int, client: int) -> int:
  """Returns the number of local epochs of a client in a round."""
  config = plan.config
  if plan.is_of_one_site:
    return config.local_epochs
  least, most = plan.schedule.epochs(config.local_epochs, round_index)
  if least == most:
    return most
  generator = seeds.generator(config.seed, 'local_epochs', round_index, client)
  return int(generator.integers(least, most + 1))
