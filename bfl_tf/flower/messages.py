"""All that travels between server and nodes, and what a server may ask for.

  server to node          node to server
  {flags}                 {client, data_summary}: who it is, what its file holds
  `Order`                 {update, memory}: `statistics.ClientUpdate`
  `Question`              {counts}, or `SiteStatistics` of held-out examples

A message is a tree. Its numbers and texts are in one of Flower's records, its
arrays in another, by their places in the tree: `update|model|loc`. Nothing is
pickled, on either side.
"""

from collections.abc import Mapping
import os
import re
from typing import Any, NamedTuple

from flwr import app
import numpy as np

from bfl_tf import data, trees
from bfl_tf.federation import stopping
from bfl_tf.federation.client import Broadcast
from bfl_tf.runs import flags_file

# That a server names code to be imported is for the owner of a node to allow.
OWN_CODE = 'BFL_TF_OWN_CODE'
# What a server may set on a node: numbers, and words that name what is ours.
_WORDS = re.compile(r"[\w.,+\-()\[\]' ]*")
# A set of scikit-learn or of TFDS, perhaps with its version: no file, no code.
_SET = re.compile(r'\w[\w/-]*(:[\d.*]+)?')
# These name nothing that a node reads.
_ANY = re.compile('.*')
_GRAMMAR = {'dataset': _SET} | dict.fromkeys(
  ('train_split', 'test_split', 'server_split', 'server_dataset',
   'students.students', *data.COLUMNS),
  _ANY
)  # fmt: skip


class Order(NamedTuple):
  """The message that asks a node to train a client.

  Attributes:
    flags: the config, as of `flags_file.flag_lines`, a line each.
    client: Number of the client.
    broadcast: Broadcast of the round.
    memory: Memory of the client, by part name.
    run: names the run, among others of the same flags, to a node that keeps
      the memory in place of the server; nothing where the order brings it.
    accepted: the last round whose update of this client was taken in, from 0;
      -1 if none was.
    told: A `DataSummary` of all nodes' files as JSON; empty if nodes have no
      files.
  """

  flags: str
  client: int
  broadcast: Broadcast
  memory: Mapping[str, Any]
  run: str = ''
  accepted: int = -1
  told: str = ''


class Question(NamedTuple):
  """The message that asks a node to evaluate the model of a finished run.

  Attributes:
    flags: the config, as of `flags_file.flag_lines`, a line each.
    client: the node's number.
    task: a `Task` as JSON.
    share: `calibration` or `test`.
    score: one of `metrics.SET_SCORES`, by which the calibration share counts.
    limits: `[num_levels]` int32, by which sets are made of the test share: for
      each of `promises.LEVELS` the bins of scores in a set; empty if no node
      held out a calibration share.
    model: Weights of the model to evaluate.
  """

  flags: str
  client: int
  task: str
  share: str
  score: str
  limits: Any
  model: Any


def pack(
  tree: Any, packed: Mapping[str, app.Array] | None = None
) -> app.RecordDict:
  """Returns the message of a tree.

  Args:
    tree: a dict or a NamedTuple.
    packed: arrays that messages have in common, by `pack_arrays`: their bytes
      are shared and not copied.
  """
  tree = tree if isinstance(tree, Mapping) else tree._asdict()
  plain: dict[str, Any] = {}
  arrays = dict(packed or {})
  for name, leaf in trees.leaves(tree):
    if isinstance(leaf, str | int):
      plain[name] = leaf
    else:
      arrays[name] = _array(leaf)
  return app.RecordDict(
    {'plain': app.ConfigRecord(plain), 'arrays': app.ArrayRecord(arrays)}
  )


def pack_arrays(tree: Mapping[str, Any]) -> dict[str, app.Array]:
  """Returns the arrays of a tree, by their places in it."""
  return {name: _array(value) for name, value in trees.leaves(tree)}


def _array(value):
  return app.Array(np.asarray(value))


def unpack(content: app.RecordDict) -> dict[str, Any]:
  """Returns the tree that `pack` was given, as dicts.

  Of what anybody may have sent it raises any `Exception`.
  """
  plain = content.config_records.get('plain')
  arrays = content.array_records.get('arrays')
  if plain is None or arrays is None:
    raise ValueError('it has no records "plain" and "arrays"')
  tree: dict[str, Any] = {}
  for name, value in plain.items():
    trees.put(tree, name, value)
  for name, array in arrays.items():
    # Without pickles: `Array.numpy` allows none. An archive would be one of
    # arrays that nobody has unpacked yet.
    unpacked = array.numpy()
    if not isinstance(unpacked, np.ndarray):
      raise ValueError(f'its {name[:40]} is not an array')
    trees.put(tree, name, unpacked)
  return tree


def reason(error: app.Error) -> str:
  """The line that an app's exception ended in, without Flower's wrapping."""
  lines = [line for line in (error.reason or '').splitlines() if line.strip()]
  return (
    lines[-1].strip()[: stopping.LONGEST] if lines else f'error {error.code}'
  )


def check_flags(flags: str, has_file: bool) -> list[str]:
  """Returns the lines of flags, if a server may set them on this node.

  Looked at before they are parsed, which imports what is named.

  Args:
    flags: Flags of the run, one per line, as of `flags_file.flag_lines`.
    has_file: whether the node has a file of its own, which is read in place of
      what `--dataset` names.

  Raises:
    ValueError: naming the flag, and what the node's owner would set.
  """
  first, *lines = flags.splitlines()
  if first != flags_file.VERSION:
    raise ValueError(
      f'the server runs {first.lstrip("# ")}, this node '
      f'{flags_file.VERSION.lstrip("# ")}: install the same on both'
    )
  if os.environ.get(OWN_CODE) == '1':
    return lines
  grammar = _GRAMMAR | ({'dataset': _ANY} if has_file else {})
  for line in lines:
    flag, equals, value = line.removeprefix('--').partition('=')
    if not line.startswith('--') or not equals:
      raise ValueError(f'{line[:100]!r} is not a flag')
    if not grammar.get(flag, _WORDS).fullmatch(value):
      raise ValueError(
        f'{line[:100]}: a server may set only numbers and built-in names on a '
        'node. The owner of the node sets its file with data="FILE", and '
        f'permits user code with {OWN_CODE}=1.'
      )
  return lines
