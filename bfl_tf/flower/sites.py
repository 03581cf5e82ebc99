"""A client's own side: its data, compiled once a process.

One model a process, kept over rounds and clients: any idle process may play any
client, so what is kept goes by what was compiled.
"""

from collections.abc import Callable, Iterable, Mapping
import contextlib
import dataclasses
import functools
import os
import re
from typing import Any, NamedTuple

import numpy as np

from bfl_tf import datasets, training
from bfl_tf.config import config as config_lib
from bfl_tf.datasets import names
from bfl_tf.federation import building
from bfl_tf.federation import client as client_lib
from bfl_tf.flower import introductions, memories, messages
from bfl_tf.runs import flags_file as recorded

# That a server names code to be imported is for the owner of a node to allow.
OWN_CODE = 'BFL_TF_OWN_CODE'
_DATA = ('dataset', 'server_dataset')
# Of TFDS; what else has a colon is code, but for texts that name nothing.
_VERSIONED = re.compile(r'[\w./-]+:[\d.*]+')
_NO_NAMES = frozenset((
  'train_split', 'test_split', 'server_split', 'label_column', 'client_column',
  'ignore_columns',
))  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Site:
  """What trains the clients of one config.

  Attributes:
    plan: what clients are told.
    examples: of a client, indices into what the worker holds.
    worker: this process's device, with the data.
  """

  plan: client_lib.Plan
  examples: Callable[[int], np.ndarray]
  worker: training.Worker

  def train(self, order: messages.Order, memory_dir: str = ''):
    """Returns the update, and what is kept for the client if it brought that.

    Args:
      order: of the server.
      memory_dir: where this node keeps what the order does not bring.
    """
    client, memory = order.client, order.memory
    kept = None
    if memory is None and self.plan.fresh_memory(order.broadcast.model):
      kept = memories.Kept.of(memory_dir, order.run, order.flags, client)
      # Two checkpoints are kept, so many rounds apart.
      back = 2 * self.plan.config.checkpoint_every
      memory = kept.take(order.accepted, order.broadcast.round - back)
    job = client_lib.job(
      self.plan, order.broadcast, client, self.examples(client), memory
    )
    attacked = client_lib.Attacked.of(self.plan, order.broadcast.round, client)
    update, memory = client_lib.train_client(self.worker, job, client, attacked)
    if kept is not None:
      kept.put(order.broadcast.round, memory)
    return update, None if kept is not None else memory


class Own(NamedTuple):
  """The file of a node's owner, who says how it is read.

  Attributes:
    data: the file; nothing if the node has none.
    label_column: of a .csv.
    ignore_columns: of a .csv, separated by commas.
    test_fraction: that it holds out; if empty what a run asks for.
    calibration_fraction: likewise.
  """

  data: str = ''
  label_column: str = 'label'
  ignore_columns: str = ''
  test_fraction: str = ''
  calibration_fraction: str = ''

  @classmethod
  def of(cls, node_config: Mapping[str, Any]) -> 'Own':
    """Reads a SuperNode's --node-config."""
    keys = {name: name.replace('_', '-') for name in cls._fields}
    return cls(
      **{n: str(node_config[k]) for n, k in keys.items() if k in node_config}
    )


# Of the run that is played: another one's is let go of.
@functools.lru_cache(maxsize=1)
def of(flags: str, own: Own = Own(), told: str = '') -> Site:  # noqa: B008
  """Returns the site of a config.

  Args:
    flags: as of `recorded.flag_lines`, a line each.
    own: the node's own file: all its training examples are its client's.
    told: of everybody's files, an `Introduction`; where there are any.

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
    dataset = introductions.Introduction.from_json(told).tell(dataset)
  training.configure(1, config.deterministic)
  plan = client_lib.Plan.of(config)
  # One device: another process is there for another core.
  (worker,) = building.workers(
    config.replace(num_workers=1), dataset, plan.parts, {}, plan.random
  )
  if own.data:
    everything = np.arange(len(dataset.train.y), dtype=np.int32)
    return Site(plan, lambda client: everything, worker)
  partition, _ = building.partition(config, dataset)
  return Site(plan, partition.__getitem__, worker)


def read(flags: str, own: Own) -> tuple[config_lib.Config, datasets.Dataset]:
  """Returns the config, and the examples that a node has.

  Raises:
    ValueError: as of `of`.
  """
  first, *lines = flags.splitlines()
  if first != recorded.VERSION:
    raise ValueError(
      f'the server runs {first.lstrip("# ")}, this node '
      f'{recorded.VERSION.lstrip("# ")}: install the same on both'
    )
  # Before it is parsed, which imports what is named.
  check(lines, own)
  config = recorded.parse(lines)
  if own.data and config.partition != 'natural':
    raise ValueError(
      f'--partition={config.partition}: a node with a file of its own is one '
      'client: set --partition=natural'
    )
  if own.data:
    _check_shares(config, own)
    config = config.replace(
      dataset=own.data,
      # Of the server's own file: nobody would score these.
      validation_split=0.0,
      client_column='',
      label_column=own.label_column,
      ignore_columns=own.ignore_columns,
    )
  return config, building.dataset(config, {})


def _check_shares(config, own):
  """Refuses other shares than the owner's, which would tell rows apart."""
  for share in ('test_fraction', 'calibration_fraction'):
    wanted, asked = getattr(own, share), getattr(config, share)
    if wanted and not _is_number(wanted, asked):
      raise ValueError(
        f'--{share}={asked}: the owner of this node holds out {wanted}, and no '
        'other share'
      )


def _is_number(text, value) -> bool:
  with contextlib.suppress(ValueError):
    return float(text) == value
  return False


def check(lines: Iterable[str], own: Own) -> None:
  """Refuses what a server may not ask of a node.

  A colon is what makes a name one of code (`registry.resolve`), whatever is on
  either side of it and however a list quotes it.

  Args:
    lines: flags, as texts.
    own: of the node.

  Raises:
    ValueError: naming the flag, and what the node's owner would set.
  """
  if os.environ.get(OWN_CODE) == '1':
    return
  for line in lines:
    if line.startswith('#'):
      continue
    flag, _, value = line.removeprefix('--').partition('=')
    if not line.startswith('--'):
      raise ValueError(f'{line[:100]!r} is no flag')
    is_file = flag in _DATA and names.kind(value).is_file
    named = is_file or (flag in _DATA and _VERSIONED.fullmatch(value))
    if ':' in value and not named and flag not in _NO_NAMES:
      raise ValueError(
        f'{line[:100]} is code that this node does not run: set '
        f'{OWN_CODE}=1 there to allow it.'
      )
    if flag == 'dataset' and is_file and not own.data:
      raise ValueError(
        f'{line[:100]}: a server names no files here; start the SuperNode with '
        '--node-config \'data="FILE"\'.'
      )
