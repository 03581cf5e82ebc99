"""Flower's ClientApp and its data.

A process compiles one model and reuses it for all rounds and clients, because
any idle process may train any client.

Keys of a SuperNode's --node-config:

  partition-id          number of the client
  data                  training file that replaces --dataset
  label-column, ignore-columns, categorical-columns
                        columns of that file
  separator, decimal, thousands, missing-values
                        notation of that file; by default that of the run
  test-fraction, calibration-fraction
                        held-out shares of that file
  memory                directory for the client's memory
  name                  name of the site in reports
"""

from collections.abc import Callable, Mapping
import dataclasses
import functools
from typing import Any, NamedTuple

from flwr import app as flwr_app
from flwr import clientapp
import numpy as np

from bfl_tf import statistics, training, weights
from bfl_tf.analysis import prediction_sets, site_statistics
from bfl_tf.analysis.model import Trained
from bfl_tf.config.config import Config
from bfl_tf.data import COLUMNS, Dataset, DatasetConfig, FORMAT
from bfl_tf.data.csv_files import CellError
from bfl_tf.federation import client as client_lib
from bfl_tf.federation import run_data
from bfl_tf.federation.plan import Plan
from bfl_tf.flower import client_state, data_summaries, messages
from bfl_tf.metrics import conformal
from bfl_tf.runs import run_config
from bfl_tf.runs.task import Task

# Settings of the node's owner; they describe the node's own file.
_SHARES = ('test_fraction', 'calibration_fraction')
_SETTINGS = (
  *_SHARES, 'label_column', 'group_column', 'ignore_columns',
  'categorical_columns', *FORMAT,
)  # fmt: skip

# Flower's simulation sets `num-partitions`.
_KEYS = ('partition-id', 'num-partitions', 'data', 'memory', 'name')

app = clientapp.ClientApp()


@app.query()
def query(
  message: flwr_app.Message, context: flwr_app.Context
) -> flwr_app.Message:
  """Returns this node's client number and the summary of its own file."""
  reply: dict[str, Any] = {'client': _number(context), 'data_summary': ''}
  own = OwnFile.of(context.node_config)
  if own.data:
    flags = messages.unpack(message.content)['flags']
    _, dataset = read(flags, own)
    reply['data_summary'] = data_summaries.DataSummary.of(dataset).to_json()
  return flwr_app.Message(messages.pack(reply), reply_to=message)


@app.train()
def train(
  message: flwr_app.Message, context: flwr_app.Context
) -> flwr_app.Message:
  """Trains a client by the server's order and returns its update."""
  node = context.node_config
  sent = order(message.content)
  # Only a deployed run has a name; in a simulation any node trains any client.
  if sent.run:
    _check_client(context, sent.client)
  elif {'memory', 'data'} & set(node):
    raise ValueError('the settings of a node must not be sent by the server')
  site = of(sent.flags, OwnFile.of(node), sent.summary, sent.digest)
  update = site.train(sent, str(node.get('memory', '')))
  content = messages.pack({'update': update})
  return flwr_app.Message(content, reply_to=message)


@app.evaluate()
def evaluate(
  message: flwr_app.Message, context: flwr_app.Context
) -> flwr_app.Message:
  """Returns statistics of the held-out examples of this node's file."""
  tree = messages.unpack(message.content)
  model = weights.Weights(**tree.pop('model'))
  question = messages.Question(**tree, model=model)
  _check_client(context, question.client)
  node = context.node_config
  memory_dir, name = (str(node.get(key, '')) for key in ('memory', 'name'))
  reply = {**answer(question, OwnFile.of(node), memory_dir), 'name': name}
  return flwr_app.Message(messages.pack(reply), reply_to=message)


def order(content: flwr_app.RecordDict) -> messages.Order:
  """Reads an order; adds the empty dicts that a message omits."""
  tree = messages.unpack(content)
  sent = tree.pop('broadcast')
  model = weights.Weights(**sent['model'])
  broadcast = client_lib.Broadcast(**{'shared': {}, **sent, 'model': model})
  return messages.Order(**{'memory': {}, **tree, 'broadcast': broadcast})


def _check_client(context, client):
  """Rejects an order for another client, after the owner changed the number."""
  if client != _number(context):
    raise ValueError(
      f'this node is client {_number(context)} now, but the server requested '
      f'client {client}'
    )


def _number(context) -> int:
  return int(context.node_config['partition-id'])


@dataclasses.dataclass(frozen=True)
class Site:
  """Plan, data and device to train the clients of one config."""

  plan: Plan
  examples: Callable[[int], np.ndarray]
  worker: training.Worker

  def train(
    self, order: messages.Order, memory_dir: str = ''
  ) -> statistics.ClientUpdate:
    """Returns the update, with the memory if the server stores it."""
    client, memory = order.client, order.memory
    folder = None
    if order.run and self.plan.fresh_memory(order.broadcast.model):
      folder = client_state.MemoryFolder.of(
        memory_dir, order.run, order.flags, client
      )
      # A resumed server restarts at most this many rounds back.
      back = self.plan.config.checkpoint_every
      memory = folder.take(order.accepted, order.broadcast.round - back)
    update = client_lib.train_client(
      self.plan,
      self.worker,
      order.broadcast,
      client,
      self.examples(client),
      memory,
    )
    if folder is not None:
      folder.put(order.broadcast.round, update.memory)
      update = update._replace(memory={})
    return update


class OwnFile(NamedTuple):
  """The node's own data file and its settings.

  Attributes:
    settings: Pairs of a field of `data.DatasetConfig` and its value.
  """

  data: str = ''
  settings: tuple[tuple[str, Any], ...] = ()

  @classmethod
  def of(cls, node_config: Mapping[str, Any]) -> 'OwnFile':
    """Reads a SuperNode's --node-config."""
    keys = {name: name.replace('_', '-') for name in _SETTINGS}
    if unknown := set(node_config) - {*_KEYS, *keys.values()}:
      raise ValueError(f'--node-config has the unknown entry {min(unknown)!r}')
    own_settings = (
      (n, node_config[k]) for n, k in keys.items() if k in node_config
    )
    return cls(node_config.get('data', ''), tuple(own_settings))


# Keeps only the current run's site, because its model and data are large.
@functools.lru_cache(maxsize=1)
def of(
  flags: str,
  own: OwnFile = OwnFile(),  # noqa: B008
  summary: str = '',
  digest: str = '',
) -> Site:
  """Returns the site of a config.

  Args:
    summary: A `DataSummary` of all nodes' files, if nodes have files.
    digest: Digest of the summary of this node's file in the first round.
  """
  if bool(summary) != bool(own.data):
    raise ValueError(
      'this node has a file of its own, and the run has none'
      if own.data
      else 'the run is of nodes with files of their own: set data="FILE"'
    )
  config, dataset = read(flags, own)
  if summary:
    if data_summaries.DataSummary.of(dataset).digest != digest:
      raise ValueError('the file of this node has changed during the run')
    united = data_summaries.DataSummary.from_json(summary, config.num_clients)
    dataset = united.tell(dataset)
  training.configure(1, config.deterministic)
  # One device per process: Flower starts one process per core.
  plan = Plan.of(config.replace(num_workers=1))
  (worker,) = plan.workers(dataset, {})
  plan = plan.with_layout(worker.layout)
  if own.data:
    everything = np.arange(len(dataset.train.y), dtype=np.int32)
    return Site(plan, lambda client: everything, worker)
  partition, _ = run_data.partition_dataset(config, dataset)
  return Site(plan, partition.__getitem__, worker)


def read(flags: str, own: OwnFile) -> tuple[Config, Dataset]:
  """Returns the config and the examples of a node."""
  config = run_config.parse(messages.check_flags(flags, bool(own.data)))
  if own.data and config.partition != 'natural':
    raise ValueError(
      f'--partition={config.partition}: a node with its own file is one '
      'client: set --partition=natural'
    )
  if own.data:
    own_settings = dict(own.settings)
    for share in _SHARES:
      wanted = getattr(config, share)
      # Another share could reveal rows.
      if own_settings.get(share, wanted) != wanted:
        raise ValueError(
          f'--{share}={wanted}: the owner of this node set this share to '
          f'{own_settings[share]}'
        )
    # The run's column settings describe the server's file, not this one.
    columns = {name: getattr(DatasetConfig, name) for name in COLUMNS}
    config = config.replace(
      dataset=own.data,
      validation_split=0.0,
      min_site_examples=0,
      **columns | own_settings,
    )
  try:
    return config, run_data.load(config)
  except Exception as error:
    if not own.data:
      raise
    # Messages of readers may contain cells. Flower sends only this error to the
    # server, and logs both on the node.
    counts = error.args[1] if isinstance(error, CellError) else {}
    texts = ''.join(f' (column {c!r}: {n} texts)' for c, n in counts.items())
    raise ValueError(
      f'the file of this node cannot be read{texts}; the log of the node '
      'contains the reason'
    ) from error


def answer(
  question: messages.Question, own: OwnFile, memory_dir: str = ''
) -> Mapping[str, Any]:
  """Returns sums over the held-out examples of a node's own file."""
  share = 'test' if question.share == 'personal' else question.share
  if not own.data or share not in ('calibration', 'test'):
    raise ValueError(
      'only a calibration or test share of a file of this node can be evaluated'
    )
  config, dataset = read(question.flags, own)
  task = Task.from_json(question.task)
  split = dataset.recoded(task.features).splits.get(share)
  if split is None or not len(split.y):
    raise ValueError(f'the file of this node has no {share} share')
  sets = None
  if question.limits.size:
    # Rounds to whole bins: finer limits could reveal an example's score.
    bins = question.limits.astype(int).reshape(len(prediction_sets.LEVELS), -1)
    sets = prediction_sets.PredictionSets.of_limits(
      bins / conformal.NUM_BINS, question.score
    )
  mixed = config.mixed_precision and training.has_mixed_precision()
  training.configure(1, config.deterministic)
  config = config.replace(num_workers=1, mixed_precision=mixed)
  trained = Trained(config, task, question.model)
  if question.share == 'personal' or trained.needs_site:
    memory = None
    if question.accepted >= 0:
      folder = client_state.MemoryFolder.of(
        memory_dir, question.run, question.flags, question.client
      )
      memory = folder.take(question.accepted)
    trained = trained.with_memory(memory)
  prediction, y = trained.predict(split.x), split.y
  if not task.is_numeric:
    y = data_summaries.numbers(dataset, task.classes)[y]
  if question.share == 'calibration':
    counts = site_statistics.HeldCounts.of(prediction, y, question.score)
    return counts._asdict()
  return site_statistics.of(prediction, y, sets)._asdict()
