"""A typical Flower App, for the benchmark --case=peers.

A client builds its model for every message, fits it and returns NumPy arrays;
the server averages them. Network and objective are the same as ours, and the
data is read once per process. The apps differ in how often a model is built and
traced.
"""

from collections.abc import Mapping
import functools
import json
import pathlib
import time
from typing import Any

from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp import strategy as strategies
import numpy as np

from experiments.benchmarks import keras_peer

_data: dict[str, tuple[np.ndarray, np.ndarray]] = {}


def load(path: str) -> tuple[np.ndarray, np.ndarray]:
  """Returns images and labels."""
  if path not in _data:
    with np.load(path) as arrays:
      _data[path] = arrays['x_train'], arrays['y_train']
  return _data[path]


def apps(config: Mapping[str, Any]) -> tuple[ServerApp, ClientApp]:
  """Returns the app.

  Args:
    config: `model` and `variant` of bfl_tf; `data`, an .npz file; `augment`;
      `batch-size`; `num-rounds`; `seconds`, the output file with the times.
  """
  server, client = ServerApp(), ClientApp()
  client.train()(functools.partial(_train, config))
  server.main()(functools.partial(_serve, config))
  return server, client


def _build(config, x):
  return keras_peer.build(
    config['model'], config['variant'], x.shape[1:], len(x)
  )


def _train(config, message, context) -> Message:
  """Fits the model on this node's share."""
  node = context.node_config
  own = slice(node['partition-id'], None, node['num-partitions'])
  x, y = (array[own] for array in load(config['data']))
  model = _build(config, x)
  model.set_weights(message.content['arrays'].to_numpy_ndarrays())
  own = keras_peer.examples(x, y, config['batch-size'], config['augment'])
  fit = model.fit(**own, verbose=0)
  metrics = {'num-examples': len(x), 'loss': fit.history['loss'][-1]}
  content = {
    'arrays': ArrayRecord(model.get_weights()),
    'metrics': MetricRecord(metrics),
  }
  return Message(RecordDict(content), reply_to=message)


def _serve(config, grid, unused_context) -> None:
  """Averages; writes seconds and number of replies of each round as JSON."""
  x, _ = load(config['data'])
  model = _build(config, x)
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
    ArrayRecord(model.get_weights()),
    num_rounds=config['num-rounds'],
    evaluate_fn=stamp,
  )
  said = {'seconds': np.diff(ended).tolist(), 'replies': replies}
  pathlib.Path(config['seconds']).write_text(json.dumps(said))
