"""PyTorch as an expert writes it for CPUs: a peer of --case=peers.

Each core has one process with one thread. Images are in the channels-last
layout, and the optimizer is fused.
"""

from collections.abc import Callable
import concurrent.futures
from typing import Any

import numpy as np
import torch

from bfl_tf import training
from bfl_tf.config.config import Config
from bfl_tf.runs import executor
from experiments.benchmarks import measuring, torch_peer

# In a training process: the function of the client's number and the weights.
_trains: list[Callable[[int, dict], dict]] = []


def begin(config: Config) -> tuple[str, Callable[[], Any]]:
  """Returns a label and a function that runs one round."""
  processes = training.bounded(config.num_workers)
  pool = measuring.process_pool(processes, _start, (config,))
  with np.load(config.dataset) as arrays:
    shape = np.moveaxis(arrays['x_train'][:1], -1, 1).shape[1:]
  start = torch_peer.arrays_of(torch_peer.NETWORKS[config.model](shape))

  def execute():
    tasks = [
      pool.submit(_train, (client, start))
      for client in range(config.num_clients)
    ]
    trained = concurrent.futures.as_completed(tasks)
    sums = next(trained).result()
    for client in trained:
      for total, array in zip(sums, client.result()):
        total += array
    return [total / config.num_clients for total in sums]

  kind = 'bfloat16' if config.mixed_precision else 'float32'
  return f'PyTorch, {processes} processes, channels last, {kind}', execute


def _start(config):
  executor.end_with_parent()
  torch.set_num_threads(1)
  x, y = torch_peer.examples(config)
  x = x.contiguous(memory_format=torch.channels_last)
  model = torch_peer.NETWORKS[config.model](x.shape[1:])
  model = model.to(memory_format=torch.channels_last)
  size = len(x) // config.num_clients

  def train(client, start):
    torch_peer.set_arrays(model, start)
    own = torch.arange(client * size, (client + 1) * size)
    with torch.autocast('cpu', torch.bfloat16, config.mixed_precision):
      torch_peer.train(model, x, y, own, config, fused=True)
    return torch_peer.arrays_of(model)

  _trains.append(train)


def _train(task):
  return _trains[0](*task)
