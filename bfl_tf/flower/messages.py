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
from bfl_tf.runs import trees

# Of what NumPy writes before an array's data, generously.
_HEADER = 1024
# Of what somebody else's reason goes into a line.
_LONGEST = 300


class Order(NamedTuple):
  """What one client is sent.

  Attributes:
    flags: the config, as of `recorded.flag_lines`, a line each.
    client: its number.
    broadcast: of the round.
    memory: by part name, what it kept; None where it keeps that itself.
    accepted: the last round whose update of this client was taken in, from 0;
      -1 if none was.
    run: names the run, among others of the same flags.
    told: what everybody's own files are together, an `Introduction` as JSON;
      nothing where nodes have none.
  """

  flags: str
  client: int
  broadcast: client_lib.Broadcast
  memory: Mapping[str, Any] | None = None
  accepted: int = -1
  run: str = ''
  told: str = ''


def pack_greeting(flags: str) -> app.RecordDict:
  """Returns the message that asks a node who it is."""
  return app.RecordDict({'config': app.ConfigRecord({'flags': flags})})


def unpack_greeting(content: app.RecordDict) -> str:
  """Returns the flags of what will be run."""
  return str(content.config_records['config']['flags'])


def pack_broadcast(broadcast: client_lib.Broadcast) -> app.ArrayRecord:
  """Returns what all orders of a round have in common, to be packed once."""
  return pack({'model': broadcast.model, 'shared': broadcast.shared})


def pack_order(order: Order, packed: app.ArrayRecord) -> app.RecordDict:
  """Returns the message of an order.

  Args:
    order: what is sent.
    packed: its broadcast, whose bytes are shared and not copied.
  """
  broadcast = order.broadcast
  own = pack({'memory': order.memory or {}})
  numbers: dict[str, Any] = {
    'flags': order.flags,
    'client': int(order.client),
    'round': int(broadcast.round),
    'num-examples': int(broadcast.num_examples),
    'accepted': int(order.accepted),
    'run': order.run,
    'told': order.told,
    'brings-memory': order.memory is not None,
  }
  arrays = app.ArrayRecord({**packed, **own})
  return app.RecordDict({'arrays': arrays, 'config': app.ConfigRecord(numbers)})


def unpack_order(content: app.RecordDict) -> Order:
  """Reads what `pack_order` wrote."""
  config: Mapping[str, Any] = content.config_records['config']
  tree = unpacked(content.array_records['arrays'])
  broadcast = client_lib.Broadcast(
    config['round'],
    weights_lib.Weights(**tree['model']),
    tree.get('shared', {}),
    config['num-examples'],
  )
  memory = tree.get('memory', {}) if config['brings-memory'] else None
  return Order(
    config['flags'], config['client'], broadcast, memory, config['accepted'],
    config['run'], config['told'],
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
    {'arrays': pack(tree), 'metrics': app.MetricRecord(numbers)}
  )


def unpack_update(
  content: app.RecordDict, sizes: Mapping[str, int]
) -> tuple[statistics.ClientUpdate, Mapping[str, Any]]:
  """Reads what `pack_update` wrote, if it is no more than was asked for.

  Args:
    content: of anybody's reply.
    sizes: as of `sizes`.

  Raises:
    ValueError: it is larger, or something else.
  """
  numbers: Any = content.metric_records.get('metrics')
  if numbers is None:
    raise ValueError('it has no record "metrics".')
  tree = unpack(content, sizes)
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


def unpack(content: app.RecordDict, sizes: Mapping[str, int]) -> dict[str, Any]:
  """Returns anybody's arrays, if they are no more than was asked for.

  Args:
    content: of a reply.
    sizes: the bytes of each array by its name; looked at before anything is
      unpacked.

  Raises:
    ValueError: there are none, or others, or larger ones.
  """
  arrays = content.array_records.get('arrays')
  if arrays is None:
    raise ValueError('it has no record "arrays".')
  for name, array in arrays.items():
    if name not in sizes:
      raise ValueError(f'it sent {name[:40]!r}, which nobody asked for')
    if len(array.data) > sizes[name] + _HEADER:
      raise ValueError(
        f'its {name} has {len(array.data)} bytes where {sizes[name]} are wanted'
      )
  return unpacked(arrays)


def sizes(like: training.Result, rank: int) -> dict[str, int]:
  """The bytes of each array that a client may send, by its name.

  Args:
    like: `tf.TensorSpec`s of a training's result.
    rank: that a part's factor has at most: the one size that a spec leaves out.
  """
  tree = {
    'model': like.model,
    'extras': like.extra,
    'trace': like.trace,
    'memory': like.memory,
  }
  return {
    name: math.prod(rank if n is None else n for n in spec.shape)
    * spec.dtype.size
    for name, spec in trees.leaves(tree)
  }


def reason(error: app.Error) -> str:
  """The line that an app's exception ended in, without Flower's wrapping."""
  lines = [line for line in (error.reason or '').splitlines() if line.strip()]
  return lines[-1].strip()[:_LONGEST] if lines else f'error {error.code}'


def pack(tree: Mapping[str, Any]) -> app.ArrayRecord:
  """Returns the arrays of a tree, named by their places in it."""
  return app.ArrayRecord(
    {name: app.Array(value) for name, value in trees.flatten(tree)}
  )


def unpacked(record: app.ArrayRecord) -> dict[str, Any]:
  """Returns the tree that `pack` was given, of arrays."""
  tree: dict[str, Any] = {}
  for name, array in record.items():
    # Without pickles: `Array.numpy` allows none.
    trees.put(tree, name, array.numpy())
  return tree
