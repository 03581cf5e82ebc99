"""A typical Flower App, for the benchmark --case=peers.

A client builds its model for every message, fits it and returns NumPy arrays;
the server averages them. Network and objective are the same as ours, and the
data is read once per process. The apps differ in how often a model is built and
traced.
"""

import functools
import importlib
import json
import pathlib
import sys
import time
import types

from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp import strategy as strategies
import numpy as np

from bfl_tf import training
from bfl_tf.config.config import Config
from bfl_tf.flower import simulation

_SETTINGS = (
  'dataset', 'model', 'variant', 'augment', 'batch_size', 'num_rounds',
  'num_clients', 'client_optimizer', 'client_learning_rate',
)  # fmt: skip
_USUAL = (
  'from experiments.benchmarks import flower_baseline as f; f.run_usual_app()'
)
_data: dict[str, tuple[np.ndarray, np.ndarray]] = {}


def load(path: str) -> tuple[np.ndarray, np.ndarray]:
  """Returns images and labels."""
  if path not in _data:
    with np.load(path) as arrays:
      _data[path] = arrays['x_train'], arrays['y_train']
  return _data[path]


def _peer(settings):
  name = f'experiments.benchmarks.{settings.framework}_peer'
  return importlib.import_module(name)


def _train(settings, message, context) -> Message:
  """Fits the model on this node's share."""
  node = context.node_config
  own = slice(node['partition-id'], None, node['num-partitions'])
  x, y = (array[own] for array in load(settings.dataset))
  start = message.content['arrays'].to_numpy_ndarrays()
  arrays = _peer(settings).fit(settings, x, y, start)
  content = {
    'arrays': ArrayRecord(arrays),
    'metrics': MetricRecord({'num-examples': len(x)}),
  }
  return Message(RecordDict(content), reply_to=message)


def _serve(settings, grid, unused_context) -> None:
  """Averages; writes seconds and number of replies of each round as JSON."""
  x, _ = load(settings.dataset)
  start = _peer(settings).initial(settings, x)
  ended, replies = [], []

  def count(contents, unused_key):
    replies.append(len(contents))
    return MetricRecord({'replies': len(contents)})

  # Flower calls this function before the first round and after each round.
  def stamp(unused_round, unused_arrays):
    ended.append(time.perf_counter())

  strategy = strategies.FedAvg(
    fraction_evaluate=0.0,
    min_train_nodes=1,
    min_available_nodes=1,
    train_metrics_aggr_fn=count,
  )
  strategy.start(
    grid,
    ArrayRecord(start),
    num_rounds=settings.num_rounds,
    evaluate_fn=stamp,
  )
  measured = {'seconds': np.diff(ended).tolist(), 'replies': replies}
  pathlib.Path(settings.seconds).write_text(json.dumps(measured), 'utf-8')


def usual(config: Config, folder: str, framework: str, cpus: int) -> float:
  """Returns the seconds of the app's last round, with `cpus` per client app."""
  path = pathlib.Path(folder, 'seconds.json')
  settings = {name: getattr(config, name) for name in _SETTINGS} | {
    'framework': framework,
    'seconds': str(path),
    'processes': training.bounded(config.num_workers),
    'cpus': cpus,
  }
  simulation.execute(_USUAL, [json.dumps(settings)], sys.stderr.write)
  found = json.loads(path.read_text('utf-8'))
  if set(found['replies']) != {config.num_clients}:
    raise RuntimeError(f'Of the usual app clients failed: {found["replies"]}.')
  return found['seconds'][-1]


def run_usual_app() -> None:
  """Runs a plain Flower app in its own process, with settings as JSON."""
  (text,) = simulation.given()
  settings = types.SimpleNamespace(**json.loads(text))
  server, client = ServerApp(), ClientApp()
  client.train()(functools.partial(_train, settings))
  server.main()(functools.partial(_serve, settings))
  simulation.run_apps(
    server, client, settings.num_clients, settings.processes, settings.cpus
  )
