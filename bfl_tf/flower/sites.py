"""A client's own side: its data, compiled once a process.

One model a process, kept over rounds and clients: any idle process may play any
client, so what is kept goes by what was compiled.
"""

from collections.abc import Callable
import dataclasses
import functools
import os
import pathlib

import numpy as np

from bfl_tf import datasets, training
from bfl_tf.federation import building, recorded
from bfl_tf.federation import client as client_lib
from bfl_tf.federation import config as config_lib
from bfl_tf.flower import introductions, memories, messages

# That a server names code to be imported is for the owner of a node to allow.
OWN_CODE = 'BFL_TF_OWN_CODE'


@dataclasses.dataclass(frozen=True)
class Site:
  """What trains the clients of one config.

  Attributes:
    plan: what clients are told.
    examples: of a client, indices into what the worker holds.
    worker: this process's device, with the data.
  """

  plan: client_lib.Plan
  examples: Callable[[int], np.ndarray]
  worker: training.Worker

  def train(self, order: messages.Order, memory_dir: str = ''):
    """Returns the update, and what is kept for the client if it brought that.

    Args:
      order: of the server.
      memory_dir: where this node keeps what the order does not bring.
    """
    client, memory = order.client, order.memory
    kept = None
    if memory is None and self.plan.fresh_memory(order.broadcast.model):
      kept = memories.Kept.of(memory_dir, order.flags, client)
      memory = kept.take(order.accepted)
    job = client_lib.job(
      self.plan, order.broadcast, client, self.examples(client), memory
    )
    attacked = client_lib.Attacked.of(self.plan, order.broadcast.round, client)
    update, memory = client_lib.train_client(self.worker, job, client, attacked)
    if kept is not None:
      kept.put(order.broadcast.round, memory)
    return update, None if kept is not None else memory


# Of the run that is played: another one's is let go of.
@functools.lru_cache(maxsize=1)
def of(flags: str, data: str = '', told: str = '') -> Site:
  """Returns the site of a config.

  Args:
    flags: as of `recorded.flag_lines`, a line each.
    data: the node's own file: all its training examples are its client's.
    told: of everybody's files, an `Introduction`; where there are any.

  Raises:
    ValueError: the config asks for what this node does not give, or its file
      cannot be read.
  """
  config, dataset = read(flags, data)
  if told:
    dataset = introductions.Introduction.from_json(told).tell(dataset)
  training.configure(1, config.deterministic)
  plan = client_lib.Plan.of(config)
  # One device: another process is there for another core.
  (worker,) = building.workers(
    config.replace(num_workers=1), dataset, plan.parts, {}, plan.random
  )
  if data:
    everything = np.arange(len(dataset.train.y), dtype=np.int32)
    return Site(plan, lambda client: everything, worker)
  partition, _ = building.partition(config, dataset)
  return Site(plan, partition.__getitem__, worker)


def read(flags: str, data: str) -> tuple[config_lib.Config, datasets.Dataset]:
  """Returns the config, and the examples that a node has.

  Raises:
    ValueError: as of `of`.
  """
  first, *lines = flags.splitlines()
  if first != recorded.VERSION:
    raise ValueError(
      f'the server runs {first.lstrip("# ")}, this node '
      f'{recorded.VERSION.lstrip("# ")}: install the same on both'
    )
  config = recorded.parse(lines)
  check(config, data)
  if data and config.partition != 'natural':
    raise ValueError(
      f'--partition={config.partition}: a node with a file of its own is one '
      'client: set --partition=natural'
    )
  if data:
    config = config.replace(dataset=data, client_column='')
  return config, building.dataset(config, {})


def check(config: config_lib.Config, data: str) -> None:
  """Refuses what a server may not ask of a node.

  Raises:
    ValueError: naming the flag, and what the node's owner would set.
  """
  if os.environ.get(OWN_CODE) == '1':
    return
  for role in ('dataset', 'server_dataset', *config_lib.ROLES):
    value = getattr(config, role)
    for name in value if isinstance(value, tuple) else (value,):
      if ':' in name:
        raise ValueError(
          f'--{role}={name} is code that this node does not run: set '
          f'{OWN_CODE}=1 there to allow it.'
        )
  if not data and pathlib.Path(config.dataset).suffix in ('.csv', '.npz'):
    raise ValueError(
      f'--dataset={config.dataset}: a server names no files here; start the '
      'SuperNode with --node-config \'data="FILE"\'.'
    )
