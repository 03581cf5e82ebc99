"""What travels, as Flower's records: arrays by name, numbers, flags.

Nothing is pickled, on either side. A broadcast has the global model, what
parts share and, where the server keeps it, the client's own memory; a reply
has the update: the model's arrays, a part's vectors, the trace.
"""

from collections.abc import Mapping
import math
from typing import Any, NamedTuple

from flwr import app

from bfl_tf import statistics, training
from bfl_tf import weights as weights_lib
from bfl_tf.federation import client as client_lib
from bfl_tf.federation import trees

# Of what NumPy writes before an array's data, generously.
_HEADER = 1024


class Order(NamedTuple):
  """What one client is sent.

  Attributes:
    flags: the config, as of `recorded.flag_lines`, a line each.
    client: its number.
    broadcast: of the round.
    memory: by part name, what it kept; None where it keeps that itself.
    accepted: the last round whose update of this client was taken in, from 0;
      -1 if none was.
    told: what everybody's own files are together, an `Introduction` as JSON;
      nothing where nodes have none.
  """

  flags: str
  client: int
  broadcast: client_lib.Broadcast
  memory: Mapping[str, Any] | None = None
  accepted: int = -1
  told: str = ''


def pack_question(flags: str) -> app.RecordDict:
  """Returns the message that asks a node who it is."""
  return app.RecordDict({'config': app.ConfigRecord({'flags': flags})})


def unpack_question(content: app.RecordDict) -> str:
  """Returns the flags of what will be run."""
  return str(content.config_records['config']['flags'])


def pack_broadcast(broadcast: client_lib.Broadcast) -> app.ArrayRecord:
  """Returns what all orders of a round have in common, to be packed once."""
  return _pack({'model': broadcast.model, 'shared': broadcast.shared})


def pack_order(order: Order, packed: app.ArrayRecord) -> app.RecordDict:
  """Returns the message of an order.

  Args:
    order: what is sent.
    packed: its broadcast, whose bytes are shared and not copied.
  """
  broadcast = order.broadcast
  own = _pack({'memory': order.memory or {}})
  numbers: dict[str, Any] = {
    'flags': order.flags,
    'client': int(order.client),
    'round': int(broadcast.round),
    'num-examples': int(broadcast.num_examples),
    'accepted': int(order.accepted),
    'told': order.told,
    'brings-memory': order.memory is not None,
  }
  arrays = app.ArrayRecord({**packed, **own})
  return app.RecordDict({'arrays': arrays, 'config': app.ConfigRecord(numbers)})


def unpack_order(content: app.RecordDict) -> Order:
  """Reads what `pack_order` wrote."""
  config: Mapping[str, Any] = content.config_records['config']
  tree = _unpack(content.array_records['arrays'])
  broadcast = client_lib.Broadcast(
    config['round'],
    weights_lib.Weights(**tree['model']),
    tree.get('shared', {}),
    config['num-examples'],
  )
  memory = tree.get('memory', {}) if config['brings-memory'] else None
  return Order(
    config['flags'], config['client'], broadcast, memory, config['accepted'],
    config['told'],
  )  # fmt: skip


def pack_update(
  update: statistics.ClientUpdate, memory: Mapping[str, Any] | None
) -> app.RecordDict:
  """Returns the reply; a memory of None stays where it is."""
  tree = {
    'model': update.model,
    'extras': update.extras,
    'trace': update.trace,
    'memory': memory or {},
  }
  numbers: dict[str, Any] = {
    'client': int(update.client_id),
    'num-examples': int(update.num_examples),
  }
  return app.RecordDict(
    {'arrays': _pack(tree), 'metrics': app.MetricRecord(numbers)}
  )


def unpack_update(
  content: app.RecordDict, most_bytes: float = math.inf
) -> tuple[statistics.ClientUpdate, Mapping[str, Any]]:
  """Reads what `pack_update` wrote, if it is not larger than it may be.

  Args:
    content: of anybody's reply.
    most_bytes: as of `num_bytes`; looked at before anything is unpacked.

  Raises:
    ValueError: it is larger, or something else.
  """
  arrays = content.array_records.get('arrays')
  numbers: Any = content.metric_records.get('metrics')
  if arrays is None or numbers is None:
    raise ValueError('it has no records "arrays" and "metrics".')
  size = sum(len(array.data) for array in arrays.values())
  if size > most_bytes + _HEADER * (len(arrays) + 1):
    raise ValueError(f'it has {size} bytes where {most_bytes} are the most')
  tree = _unpack(arrays)
  try:
    model = weights_lib.Weights(**tree.pop('model', {}))
    trace = training.Trace(**{'report': {}, **tree.pop('trace', {})})
  except TypeError as error:
    raise ValueError(f'it is no update: {error}') from error
  update = statistics.ClientUpdate(
    numbers.get('client'), numbers.get('num-examples'), model,
    tree.get('extras', {}), trace,
  )  # fmt: skip
  return update, tree.get('memory', {})


def num_bytes(like: training.Result, rank: int) -> int:
  """The size of what a client sends.

  Args:
    like: its `tf.TensorSpec`s.
    rank: that a part's factor has at most: the one size that a spec leaves out.
  """
  specs = (spec for _, spec in trees.leaves(like._asdict()))
  return sum(
    math.prod(rank if n is None else n for n in spec.shape) * spec.dtype.size
    for spec in specs
  )


def reason(error: app.Error) -> str:
  """The line that an app's exception ended in, without Flower's wrapping."""
  lines = [line for line in (error.reason or '').splitlines() if line.strip()]
  return lines[-1].strip() if lines else f'error {error.code}'


def _pack(tree) -> app.ArrayRecord:
  return app.ArrayRecord(
    {name: app.Array(value) for name, value in trees.flatten(tree)}
  )


def _unpack(record) -> dict[str, Any]:
  tree: dict[str, Any] = {}
  for name, array in record.items():
    # Without pickles: `Array.numpy` allows none.
    trees.put(tree, name, array.numpy())
  return tree
