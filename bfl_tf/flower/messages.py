"""Messages between server and nodes, and the flags that a server may set.

  server to node          node to server
  {flags}                 {client, data_summary}: number and data of the node
  `Order`                 {update}: a `statistics.ClientUpdate`
  `Question`              {counts}, or `SiteStatistics` of held-out examples

A message is a tree. One Flower record contains its numbers and texts, another
its arrays, with tree paths as keys: `update|model|loc`. Nothing is pickled.
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
from bfl_tf.runs import run_config

# With this variable a node's owner permits imports that the server names.
OWN_CODE = 'BFL_TF_OWN_CODE'
# A server may set only numbers and built-in names on a node.
_WORDS = re.compile(r"[\w.,+\-()\[\]' ]*")
# A data set of scikit-learn or TFDS, with optional version; no file, no code.
_SET = re.compile(r'\w[\w/-]*(:[\d.*]+)?')
# Nodes neither open nor import what these flags name.
_ANY = re.compile('.*')
_GRAMMAR = {'dataset': _SET} | dict.fromkeys(
  ('train_split', 'test_split', 'server_split', 'server_dataset',
   'students.students', *data.COLUMNS, *data.FORMAT),
  _ANY
)  # fmt: skip


class Order(NamedTuple):
  """A request to train a client.

  Attributes:
    run: Name of the run if the node stores the memory; empty if the order
      contains it.
    accepted: Last round whose update of this client was accepted, from 0; -1 if
      none was.
  """

  flags: str
  client: int
  broadcast: Broadcast
  memory: Mapping[str, Any]
  run: str = ''
  accepted: int = -1
  summary: str = ''
  digest: str = ''


class Question(NamedTuple):
  """A request to evaluate the model of a finished run.

  Attributes:
    share: `calibration` or `test`, or `personal` for the personal model on the
      test share.
    limits: `[num_levels, num_classes]` or `[num_levels, 1]` int32, the number
      of score bins in a set for each of `prediction_sets.LEVELS`; empty without
      a calibration share.
  """

  flags: str
  client: int
  task: str
  share: str
  score: str
  limits: Any
  model: Any
  run: str = ''
  accepted: int = -1


def pack(
  tree: Any, packed: Mapping[str, app.Array] | None = None
) -> app.RecordDict:
  """Returns the message of a tree."""
  tree = tree if isinstance(tree, Mapping) else tree._asdict()
  plain: dict[str, Any] = {}
  arrays = dict(packed or {})
  for name, leaf in trees.leaves(tree):
    if isinstance(leaf, str | int):
      plain[name] = leaf
    else:
      arrays[name] = app.Array(np.asarray(leaf))
  return app.RecordDict(
    {'plain': app.ConfigRecord(plain), 'arrays': app.ArrayRecord(arrays)}
  )


def pack_arrays(tree: Mapping[str, Any]) -> dict[str, app.Array]:
  """Returns the arrays of a tree, by tree path."""
  return {
    name: app.Array(np.asarray(value)) for name, value in trees.leaves(tree)
  }


def unpack(content: app.RecordDict) -> dict[str, Any]:
  """Returns the tree of a message as nested dicts.

  An invalid message may raise any `Exception`.
  """
  tree: dict[str, Any] = {}
  for name, value in content.config_records['plain'].items():
    trees.put(tree, name, value)
  for name, array in content.array_records['arrays'].items():
    # `Array.numpy` rejects pickles, but returns an npz archive unread.
    unpacked = array.numpy()
    if not isinstance(unpacked, np.ndarray):
      raise ValueError(f'its {name[:40]} is not an array')
    trees.put(tree, name, unpacked)
  return tree


def reason(error: app.Error) -> str:
  """Returns the last line of an app's exception."""
  lines = [line for line in (error.reason or '').splitlines() if line.strip()]
  return stopping.clean(lines[-1]) if lines else f'error {error.code}'


def check_flags(flags: str, has_file: bool) -> list[str]:
  """Returns the lines of flags if a server may set them on this node.

  The check precedes parsing, because parsing imports user code.
  """
  first, *lines = flags.splitlines()
  if first != run_config.VERSION:
    raise ValueError(
      f'the server runs {first.lstrip("# ")}, this node '
      f'{run_config.VERSION.lstrip("# ")}: install the same on both'
    )
  if os.environ.get(OWN_CODE) == '1':
    return lines
  grammar = _GRAMMAR | ({'dataset': _ANY} if has_file else {})
  for line in lines:
    flag, equals, value = line.removeprefix('--').partition('=')
    is_flag = line.startswith('--') and equals
    if not is_flag or not grammar.get(flag, _WORDS).fullmatch(value):
      raise ValueError(
        f'{line[:100]!r}: a server may set only numbers and built-in names on '
        'a node. The owner of the node sets its file with data="FILE", and '
        f'permits user code with {OWN_CODE}=1.'
      )
  return lines
