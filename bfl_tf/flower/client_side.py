"""The client's side: Flower's ClientApp, its data, compiled once a process.

One model a process, kept over rounds and clients: any idle process may play any
client, so what is kept goes by what was compiled.

Of a SuperNode's --node-config `partition-id` is the client's number, `data` the
file that it trains on in place of --dataset (`label-column`, `ignore-columns`,
`categorical-columns`: how it is read; `test-fraction`, `calibration-fraction`:
what it holds out), `memory` where a client's own memory is kept, `name` what
reports on sites call it.
"""

from collections.abc import Callable, Mapping
import dataclasses
import functools
from typing import Any, NamedTuple

from flwr import app as flwr_app
from flwr import clientapp
import numpy as np

from bfl_tf import metrics, statistics, training, weights
from bfl_tf.analysis import prediction_sets, site_statistics
from bfl_tf.analysis.model import Trained
from bfl_tf.config.config import Config
from bfl_tf.data import COLUMNS, Dataset, DatasetConfig
from bfl_tf.federation import client as client_lib
from bfl_tf.federation import run_data
from bfl_tf.federation.plan import Plan
from bfl_tf.flower import client_state, data_summaries, messages
from bfl_tf.metrics import conformal
from bfl_tf.runs import flags_file
from bfl_tf.runs.task import Task

# What an owner may say: of their file, whose rows are all one client's.
_SHARES = ('test_fraction', 'calibration_fraction')
_SAID = (*_SHARES, 'label_column', 'ignore_columns', 'categorical_columns')

app = clientapp.ClientApp()


@app.query()
def query(
  message: flwr_app.Message, context: flwr_app.Context
) -> flwr_app.Message:
  """Says which client this node is, and sums of the examples of its own."""
  said: dict[str, Any] = {'client': _number(context), 'data_summary': ''}
  own = Own.of(context.node_config)
  if own.data:
    flags = messages.unpack(message.content)['flags']
    _, dataset = read(flags, own)
    said['data_summary'] = data_summaries.DataSummary.of(dataset).to_json()
  return flwr_app.Message(messages.pack(said), reply_to=message)


@app.train()
def train(
  message: flwr_app.Message, context: flwr_app.Context
) -> flwr_app.Message:
  """Trains as the server's order says; what it raises is this client's."""
  node = context.node_config
  sent = order(message.content)
  # In a simulation any node plays any client.
  if sent.run:
    _check_asked(context, sent.client)
  elif {'memory', 'data'} & set(node):
    raise ValueError('the settings of a node must not be sent by the server')
  site = of(sent.flags, Own.of(node), sent.told)
  update = site.train(sent, str(node.get('memory', '')))
  content = messages.pack({'update': update})
  return flwr_app.Message(content, reply_to=message)


@app.evaluate()
def evaluate(
  message: flwr_app.Message, context: flwr_app.Context
) -> flwr_app.Message:
  """Says what the examples add up to that this node's file holds out."""
  tree = messages.unpack(message.content)
  model = weights.Weights(**tree.pop('model'))
  question = messages.Question(**tree, model=model)
  _check_asked(context, question.client)
  node = context.node_config
  said = {**answer(question, Own.of(node)), 'name': str(node.get('name', ''))}
  return flwr_app.Message(messages.pack(said), reply_to=message)


def order(content: flwr_app.RecordDict) -> messages.Order:
  """Reads an order; of branches without a leaf nothing travels."""
  tree = messages.unpack(content)
  sent = tree.pop('broadcast')
  model = weights.Weights(**sent['model'])
  broadcast = client_lib.Broadcast(**{'shared': {}, **sent, 'model': model})
  return messages.Order(**{'memory': {}, **tree, 'broadcast': broadcast})


def _check_asked(context, client):
  """Rejects a request for another client: the owner may have changed the
  number.
  """
  if client != _number(context):
    raise ValueError(
      f'this node is client {_number(context)} now, but the server requested '
      f'client {client}'
    )


def _number(context) -> int:
  return int(context.node_config.get('partition-id', -1))


@dataclasses.dataclass(frozen=True)
class Site:
  """Everything that trains the clients of one config.

  Attributes:
    plan: Plan of the clients.
    examples: Function from a client to indices into the worker's data.
    worker: this process's device, with the data.
  """

  plan: Plan
  examples: Callable[[int], np.ndarray]
  worker: training.Worker

  def train(
    self, order: messages.Order, memory_dir: str = ''
  ) -> statistics.ClientUpdate:
    """Returns the update, with the memory if the server keeps it.

    Args:
      order: Order of the server.
      memory_dir: Directory for the memories that the node keeps.
    """
    client, memory = order.client, order.memory
    kept = None
    if order.run and self.plan.fresh_memory(order.broadcast.model):
      kept = client_state.Kept.of(memory_dir, order.run, order.flags, client)
      # The server may go on from its checkpoint, at most so many rounds back.
      back = self.plan.config.checkpoint_every
      memory = kept.take(order.accepted, order.broadcast.round - back)
    update = client_lib.train_client(
      self.plan,
      self.worker,
      order.broadcast,
      client,
      self.examples(client),
      memory,
    )
    if kept is not None:
      kept.put(order.broadcast.round, update.memory)
      update = update._replace(memory={})
    return update


class Own(NamedTuple):
  """The file of a node's owner, who says how it is read.

  Attributes:
    data: the file; nothing if the node has none.
    said: pairs of a field of `data.DatasetConfig` and its value.
  """

  data: str = ''
  said: tuple[tuple[str, Any], ...] = ()

  @classmethod
  def of(cls, node_config: Mapping[str, Any]) -> 'Own':
    """Reads a SuperNode's --node-config."""
    keys = {name: name.replace('_', '-') for name in _SAID}
    said = ((n, node_config[k]) for n, k in keys.items() if k in node_config)
    return cls(node_config.get('data', ''), tuple(said))


# Of the run that is played: another one's is let go of.
@functools.lru_cache(maxsize=1)
def of(flags: str, own: Own = Own(), told: str = '') -> Site:  # noqa: B008
  """Returns the site of a config.

  Args:
    flags: Flags of the run, one per line, as of `flags_file.flag_lines`.
    own: the node's own file: all its training examples are its client's.
    told: A `DataSummary` of all nodes' files, if nodes have files.

  Raises:
    ValueError: the config asks for what this node does not give, or its file
      cannot be read.
  """
  if bool(told) != bool(own.data):
    raise ValueError(
      'this node has a file of its own, and the run has none'
      if own.data
      else 'the run is of nodes with files of their own: set data="FILE"'
    )
  config, dataset = read(flags, own)
  if told:
    everybody = data_summaries.DataSummary.from_json(told, config.num_clients)
    dataset = everybody.tell(dataset)
  training.configure(1, config.deterministic, config.mixed_precision)
  # One device: another process is there for another core.
  plan = Plan.of(config.replace(num_workers=1))
  (worker,) = plan.workers(dataset, {})
  if own.data:
    everything = np.arange(len(dataset.train.y), dtype=np.int32)
    return Site(plan, lambda client: everything, worker)
  partition, _ = run_data.partition_dataset(config, dataset)
  return Site(plan, partition.__getitem__, worker)


def read(flags: str, own: Own) -> tuple[Config, Dataset]:
  """Returns the config, and the examples that a node has.

  Raises:
    ValueError: Raised as by `of`.
  """
  config = flags_file.parse(messages.check_flags(flags, bool(own.data)))
  if own.data and config.partition != 'natural':
    raise ValueError(
      f'--partition={config.partition}: a node with its own file is one '
      'client: set --partition=natural'
    )
  if own.data:
    said = dict(own.said)
    _check_shares(config, said)
    # Nothing of it is as the server's own file is read.
    columns = {name: getattr(DatasetConfig, name) for name in COLUMNS}
    config = config.replace(
      dataset=own.data, validation_split=0.0, **columns | said
    )
  return config, run_data.load(config)


def _check_shares(config, said):
  """Rejects shares other than the owner's, which could reveal single rows."""
  for share in _SHARES:
    asked = getattr(config, share)
    if said.get(share, asked) != asked:
      raise ValueError(
        f'--{share}={asked}: the owner of this node set this share to '
        f'{said[share]}'
      )


def answer(question: messages.Question, own: Own) -> Mapping[str, Any]:
  """Returns what a node says: sums over examples of its own file.

  Args:
    question: Question of the server.
    own: the node's own file.

  Raises:
    ValueError: The node has no such examples, or they must not be used for
      this.
  """
  if not own.data:
    raise ValueError('this node has no file of its own')
  if question.share not in ('calibration', 'test'):
    raise ValueError(
      'only the calibration and test shares of this node can be evaluated'
    )
  config, dataset = read(question.flags, own)
  task = Task.from_json(question.task)
  split = dataset.recoded(task.features).splits.get(question.share)
  if split is None or not len(split.y):
    raise ValueError(f'the file of this node has no {question.share} share')
  promise = None
  if question.limits.size:
    # Of bins, whatever is sent: finer ones could tell an example's score.
    bins = question.limits.astype(int).reshape(len(prediction_sets.LEVELS))
    limits = tuple(bins / conformal.NUM_BINS)
    promise = prediction_sets.PredictionSets(
      prediction_sets.LEVELS, limits, 0, 0, question.score
    )
  training.configure(
    1,
    config.deterministic,
    config.mixed_precision and training.has_mixed_precision(),
  )
  trained = Trained(config.replace(num_workers=1), task, question.model)
  probs = trained.predict(split.x).probs
  y = data_summaries.numbers(dataset, task.classes)[split.y]
  if question.share == 'calibration':
    return {'counts': metrics.score_counts(probs, y, question.score)}
  return site_statistics.SiteStatistics.of(probs, y, promise)._asdict()
