"""Benchmark of our round against other frameworks, on the same images.

Each peer has its own process, with its own threads and graph rewrites. Peers
are measured one at a time, in turn, without their first round.
"""

from collections.abc import Callable
import concurrent.futures
import contextlib
import functools
import importlib
import importlib.util
import math
import statistics as stats
import tempfile
from typing import Any

from bfl_tf import federation, training
from bfl_tf.config.config import Config
from bfl_tf.runs import tables
from experiments.benchmarks import measuring, random_images

# Networks of `torch_peer`.
_OF_TORCH = [
  ('deterministic', random_images.SHAPES[name].network)
  for name in ('resnet20', 'lenet5', 'pfl_cnn')
]
_COLUMNS = ('images/s', 'min', 'max')
# Function that runs a round, in the process of a peer.
_turns: list[Callable[[], Any]] = []


def run(
  name: str,
  variant: str,
  num_workers: int,
  repeats: int,
  num_clients: int,
) -> list[dict[str, Any]]:
  """Prints and returns a row for each peer; unavailable peers have dashes."""
  with (
    tempfile.TemporaryDirectory(prefix='bfl_tf_benchmark_') as folder,
    contextlib.ExitStack() as stack,
  ):
    config = random_images.config(
      name, variant, num_workers, folder, num_clients
    )
    images = random_images.count(config)
    peers = {**_processes(config, stack), **_usual_apps(config, folder)}
    speeds: dict[str, list[float]] = {peer: [] for peer in peers}
    for _ in range(repeats):
      for peer, execute in peers.items():
        if not execute:
          continue
        try:
          speeds[peer].append(images / execute())
          print(f'{peer}: {speeds[peer][-1]:.0f} images/s', flush=True)
        except concurrent.futures.BrokenExecutor as error:
          print(f'{peer}: {error}', flush=True)
          peers[peer] = None
          speeds[peer].clear()
  ours, rows = stats.median(speeds['ours'] or [math.nan]), []
  for peer, found in speeds.items():
    row: dict[str, Any] = dict.fromkeys((*_COLUMNS, 'ours over it'))
    if found:
      spread = stats.median(found), min(found), max(found)
      row |= zip(_COLUMNS, map(round, spread))
      row['ours over it'] = f'{ours / spread[0]:.2f}'
    rows.append({'peer': peer, 'network': name, 'variant': variant, **row})
  print(f'{tables.table(rows)}\n', flush=True)
  return rows


def begin(config: Config) -> tuple[str, Callable[[], Any]]:
  """Returns our label and a function that runs one round."""
  training.configure(
    config.num_workers,
    clients_per_device=config.clients_per_device,
  )
  experiment = federation.Experiment.build(config)
  state = federation.initial_state(experiment).state
  mixed = ', mixed precision' if config.mixed_precision else ''
  return f'ours{mixed}', lambda: federation.federated_round(experiment, state)


def _processes(config, stack) -> dict[str, Callable[[], float] | None]:
  """Starts a process per peer; returns functions that time one round."""
  has_mixed = training.has_mixed_precision()
  torch = _has_torch(config)
  peers: dict[str, Callable[[], float] | None] = {}
  for name, module, there in (
    ('ours', 'peers', True),
    ('ours, mixed precision', 'peers', has_mixed),
    ('PyTorch, expert', 'torch_expert', torch),
    ('PyTorch, expert, mixed precision', 'torch_expert', torch and has_mixed),
    ('pfl-research', 'pfl_peer', torch and importlib.util.find_spec('pfl')),
    ('PyTorch', 'torch_peer', torch),
    ('Keras fit', 'keras_peer', True),
  ):
    if not there:
      peers[name] = None
      continue
    pool = measuring.process_pool(1)
    stack.enter_context(pool)
    stack.callback(end, pool)
    its = config.replace(mixed_precision='mixed' in name)
    try:
      label = pool.submit(_begin, module, its).result()
      peers[label] = functools.partial(_turn, pool)
    except concurrent.futures.BrokenExecutor as error:
      print(f'{name}: {error}', flush=True)
      peers[name] = None
  return peers


def _begin(module, config) -> str:
  begun = importlib.import_module(f'experiments.benchmarks.{module}')
  label, execute = begun.begin(config)
  execute()
  _turns.append(execute)
  return label


def end(pool: concurrent.futures.Executor) -> None:
  """Lets a peer end.

  A worker joins the processes of its own pools when it exits, and would wait
  for ever if the pools were open.
  """
  with contextlib.suppress(concurrent.futures.BrokenExecutor):
    pool.submit(measuring.end_pools).result()


def _turn(pool) -> float:
  return pool.submit(_measured).result()


def _measured() -> float:
  return measuring.seconds(_turns[0])


def _usual_apps(config, folder) -> dict[str, Callable[[], float] | None]:
  """Returns functions that time one round of a Flower app in a simulation."""
  torch = _has_torch(config)
  apps = [('keras', 1, True), ('keras', 2, True), ('torch', 1, torch)]
  found: dict[str, Callable[[], float] | None] = {}
  for framework, cpus, there in apps:
    label = f'Flower app with {framework}, CPUs per client: {cpus}'
    found[label] = None
    if there and all(map(importlib.util.find_spec, ('flwr', 'ray'))):
      from experiments.benchmarks import flower_baseline

      found[label] = functools.partial(
        flower_baseline.usual, config, folder, framework, cpus
      )
  return found


def _has_torch(config):
  found = importlib.util.find_spec('torch')
  return found and (config.variant, config.model) in _OF_TORCH
