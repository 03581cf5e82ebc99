"""A Flower App as most are written: the yardstick of --case=flower.

A client builds its model for every message, fits it and sends NumPy arrays
back; the server averages them. Network and objective are those that it is
measured against, and the data is read once a process: what differs is how often
a model is built and traced.
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
import tensorflow as tf
from tensorflow_probability import distributions as tfd
import tf_keras

from bfl_tf import models

_data: dict[str, tuple[np.ndarray, np.ndarray]] = {}


def load(path: str) -> tuple[np.ndarray, np.ndarray]:
  """Returns images and labels."""
  if path not in _data:
    with np.load(path) as arrays:
      _data[path] = arrays['x_train'], arrays['y_train']
  return _data[path]


def build(name: str, input_shape: tuple[int, ...], num_examples: int):
  """Returns a compiled network with Flipout layers."""
  model = models.build(name, input_shape=input_shape, num_classes=10)
  model.add_loss(lambda: _divergence(model) / num_examples)
  loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  model.compile('adam', loss)
  return model


def _divergence(model):
  posteriors = [
    posterior
    for layer in model.layers
    for name in ('kernel_posterior', 'bias_posterior')
    if (posterior := getattr(layer, name, None)) is not None
  ]
  prior = tfd.Normal(0.0, 10.0)
  return sum(
    tf.reduce_sum(tfd.kl_divergence(q.distribution, prior)) for q in posteriors
  )


def apps(config: Mapping[str, Any]) -> tuple[ServerApp, ClientApp]:
  """Returns the app.

  Args:
    config: `model`, a name of ours; `data`, an .npz; `batch-size`;
      `num-rounds`; `seconds`, the file that they are written to.
  """
  server, client = ServerApp(), ClientApp()
  client.train()(functools.partial(_train, config))
  server.main()(functools.partial(_serve, config))
  return server, client


def _train(config, message, context) -> Message:
  """Fits the model on this node's share."""
  node = context.node_config
  own = slice(node['partition-id'], None, node['num-partitions'])
  x, y = (array[own] for array in load(config['data']))
  model = build(config['model'], x.shape[1:], len(x))
  model.set_weights(message.content['arrays'].to_numpy_ndarrays())
  fit = model.fit(
    x.astype('float32') / 255, y, batch_size=config['batch-size'], verbose=0
  )
  metrics = {'num-examples': len(x), 'loss': fit.history['loss'][-1]}
  content = {
    'arrays': ArrayRecord(model.get_weights()),
    'metrics': MetricRecord(metrics),
  }
  return Message(RecordDict(content), reply_to=message)


def _serve(config, grid, unused_context) -> None:
  """Averages; leaves the seconds and the replies of each round as JSON."""
  x, _ = load(config['data'])
  model = build(config['model'], x.shape[1:], len(x))
  ended, replies = [], []

  def count(contents, unused_key):
    replies.append(len(contents))
    return MetricRecord({'replies': len(contents)})

  # Flower calls it before the first round and after each.
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
