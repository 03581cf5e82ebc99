"""A client's own side: its data, compiled once a process.

One model a process, kept over rounds and clients: any idle process may play any
client, so what is kept goes by what was compiled.
"""

import dataclasses
import functools
import os
import pathlib

import numpy as np

from bfl_tf import datasets, training
from bfl_tf.federation import building, recorded
from bfl_tf.federation import client as client_lib
from bfl_tf.federation import config as config_lib
from bfl_tf.flower import memories, messages

# That a server names code to be imported is for the owner of a node to allow.
OWN_CODE = 'BFL_TF_OWN_CODE'


@dataclasses.dataclass(frozen=True)
class Site:
  """What trains the clients of one config.

  Attributes:
    plan: what clients are told.
    dataset: the examples.
    partition: by client, indices into them.
    worker: this process's device.
  """

  plan: client_lib.Plan
  dataset: datasets.Dataset
  partition: list[np.ndarray]
  worker: training.Worker

  def train(self, order: messages.Order, memory_dir: str = ''):
    """Returns the update, and what is kept for the client if it brought that.

    Args:
      order: of the server.
      memory_dir: where this node keeps what the order does not bring.
    """
    client, memory = order.client, order.memory
    if not 0 <= client < len(self.partition):
      raise ValueError(f'client {client} is none of {len(self.partition)}')
    kept = None
    if memory is None and self.plan.fresh_memory(order.broadcast.model):
      kept = memories.Kept.of(memory_dir, order.flags, client)
      memory = kept.take(order.accepted)
    job = client_lib.job(
      self.plan, order.broadcast, client, self.partition[client], memory
    )
    attacked = client_lib.Attacked.of(self.plan, order.broadcast.round, client)
    update, memory = client_lib.train_client(self.worker, job, client, attacked)
    if kept is not None:
      kept.put(order.broadcast.round, memory)
    return update, None if kept is not None else memory


@functools.cache
def of(flags: str, data: str = '') -> Site:
  """Returns the site of a config.

  Args:
    flags: as of `recorded.flag_lines`, a line each.
    data: a file of the node's own, in place of --dataset.

  Raises:
    ValueError: the config asks for what this node does not give, or its file
      cannot be read.
  """
  first, *lines = flags.splitlines()
  if first != recorded.VERSION:
    raise ValueError(
      f'the server runs {first.lstrip("# ")}, this node '
      f'{recorded.VERSION.lstrip("# ")}: install the same on both'
    )
  config = recorded.parse(lines)
  check(config, data)
  if data:
    config = config.replace(dataset=data)
  training.configure(1, config.deterministic)
  plan = client_lib.Plan.of(config)
  dataset = building.dataset(config, {})
  partition, _ = building.partition(config, dataset)
  # One device: another process is there for another core.
  (worker,) = building.workers(
    config.replace(num_workers=1), dataset, plan.parts, {}, plan.random
  )
  return Site(plan, dataset, partition, worker)


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
