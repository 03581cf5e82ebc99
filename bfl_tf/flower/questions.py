"""What nodes say of a finished run's model, each of examples that it held out.

They are asked twice: how often each score occurs in their calibration shares,
which makes the promise; then what their test shares add up to, sets by that
promise among it.
"""

from collections.abc import Iterator, Mapping
import dataclasses
import functools
import math
from typing import Any, NamedTuple

from flwr import app as flwr_app
from flwr import serverapp
import numpy as np

from bfl_tf import metrics, training
from bfl_tf import weights as weights_lib
from bfl_tf.federation import promises, recorded, sites, stopping, tallies
from bfl_tf.federation import task as task_lib
from bfl_tf.federation import trained as trained_lib
from bfl_tf.flower import exchange, introductions, messages, nodes
from bfl_tf.flower import sites as sites_lib
from bfl_tf.metrics import conformal

# At a time: an answer is small, and a node takes its time to import TensorFlow.
_WINDOW = 64
# Examples that a node may say it calibrates on.
_MOST = 10**8


class Question(NamedTuple):
  """What one node is asked.

  Attributes:
    flags: the config, as of `recorded.flag_lines`, a line each.
    client: the node's number.
    task: a `Task` as JSON.
    share: `calibration` or `test`.
    promise: as JSON, by which sets are made of the test share; nothing if no
      node held out a calibration share.
    model: that is asked.
  """

  flags: str
  client: int
  task: str
  share: str
  promise: str
  model: weights_lib.Weights

  @classmethod
  def read(cls, content: flwr_app.RecordDict) -> 'Question':
    """Reads what `write` wrote."""
    numbers: Mapping[str, Any] = content.config_records['config']
    tree = messages.unpacked(content.array_records['arrays'])
    return cls(
      numbers['flags'], numbers['client'], numbers['task'], numbers['share'],
      numbers['promise'], weights_lib.Weights(**tree['model']),
    )  # fmt: skip

  def write(self, packed: flwr_app.ArrayRecord) -> flwr_app.RecordDict:
    """Returns the message; `packed` is its model, packed once for all."""
    numbers = self._asdict()
    del numbers['model']
    return flwr_app.RecordDict(
      {'arrays': packed, 'config': flwr_app.ConfigRecord(numbers)}
    )


def answer(question: Question, own: sites_lib.Own) -> dict[str, np.ndarray]:
  """Returns what a node says: sums over examples of its own file.

  Args:
    question: of the server.
    own: the node's own file.

  Raises:
    ValueError: it has no such examples.
  """
  if not own.data:
    raise ValueError('this node has no file of its own')
  config, dataset = sites_lib.read(question.flags, own)
  split = getattr(dataset, question.share)
  if split is None or not len(split.y):
    raise ValueError(f'its file holds out no {question.share} share')
  training.configure(1, config.deterministic)
  task = task_lib.Task.from_json(question.task)
  trained = trained_lib.Trained(
    config.replace(num_workers=1), task, question.model
  )
  probs = trained.predict(split.x).probs
  y = introductions.numbers(dataset, task.classes)[split.y]
  if question.share == 'calibration':
    return {'counts': metrics.score_counts(probs, y)}
  promise = None
  if question.promise:
    promise = promises.Promise.from_json(question.promise)
  return tallies.Tally.of(probs, y, promise)._asdict()


def ask(
  grid: serverapp.Grid,
  playing: nodes.Numbered,
  trained: trained_lib.Trained,
  poll_seconds: float = 1.0,
) -> sites.Report:
  """Has a finished run's nodes score its model.

  Args:
    grid: Flower's.
    playing: who plays which client.
    trained: the run's model.
    poll_seconds: between two looks for answers.

  Raises:
    TooFewClientsError: fewer than `--min_clients` said something good.
  """
  config, num_classes = trained.config, trained.task.num_classes
  asking = _Asking(grid, playing, trained, poll_seconds)
  promise = None
  if config.calibration_fraction:
    counts = asking.ask('calibration', None, _Counts.nothing())
    arrays = [said.counts for said in counts.values()]
    promise = promises.Promise.of(arrays, trained.num_samples())
  levels = promise.levels if promise else ()
  nothing = tallies.Tally.nothing(num_classes, len(levels))
  said = asking.ask('test', promise, nothing)
  report = sites.Report.of(
    trained,
    {str(client): tally for client, tally in sorted(said.items())},
    functools.reduce(tallies.Tally.merge, said.values()),
    promise,
    [str(client) for client in range(config.num_clients)],
  )
  left_out = {str(c): why for c, why in sorted(asking.left_out.items())}
  return dataclasses.replace(report, left_out=left_out)


class _Counts(NamedTuple):
  """How often each calibration score occurs: `[num_bins]` integers."""

  counts: np.ndarray

  @classmethod
  def nothing(cls) -> '_Counts':
    return cls(np.zeros(conformal.NUM_BINS, np.int64))

  def check(self) -> None:
    """Refuses what nobody counts."""
    large = np.any(self.counts > _MOST)
    if large or np.any(self.counts < 0) or not self.counts.any():
      raise ValueError('its counts are of no examples')


@dataclasses.dataclass
class _Asking:
  """Questions to nodes; `left_out` says by client why nothing good came."""

  grid: serverapp.Grid
  playing: nodes.Numbered
  trained: trained_lib.Trained
  poll_seconds: float
  left_out: dict[int, str] = dataclasses.field(default_factory=dict)

  def ask(self, share, promise, nothing) -> dict[int, Any]:
    """Returns what came, by client; each is like `nothing`."""
    config, found = self.trained.config, {}
    sizes = {name: array.nbytes for name, array in nothing._asdict().items()}
    orders = self._orders(share, promise.to_json() if promise else '')
    for client, reply in exchange.exchange(
      self.grid, orders, _WINDOW, self.poll_seconds
    ):
      try:
        tree = messages.unpack(exchange.content(reply), sizes)
        found[client] = _checked(tree, nothing)
      # Whatever somebody sends, it is this node's alone.
      except Exception as failure:
        self.left_out[client] = str(failure)
    if len(found) < config.min_clients:
      reasons = sorted(self.left_out.items())
      said = '; '.join(f'{client}: {why}' for client, why in reasons)
      raise stopping.TooFewClientsError(
        f'{len(found)} answers on the {share} share are fewer than '
        f'--min_clients={config.min_clients} ({said}).'
      )
    return found

  def _orders(self, share, promise) -> Iterator[exchange.Order]:
    trained = self.trained
    config = trained.config
    flags = '\n'.join(recorded.flag_lines(config))
    task, model = trained.task.to_json(), trained.weights
    packed = messages.pack({'model': model})
    clients = range(config.num_clients)
    there = self.playing(clients)
    self.left_out |= dict.fromkeys(
      set(clients) - set(there), 'it has no SuperNode'
    )
    for client, node in there.items():
      if client in self.left_out:
        continue
      question = Question(flags, client, task, share, promise, model)
      message = flwr_app.Message(question.write(packed), node, 'evaluate')
      seconds = config.client_timeout or math.inf
      yield exchange.Order(client, message, seconds)


def _checked(tree, nothing):
  """Returns what a node sent, shaped as `nothing`."""
  like = nothing._asdict()
  if set(tree) != set(like):
    raise ValueError(f'its answer lacks {min(set(like) - set(tree))}')
  for name, array in like.items():
    given = tree[name]
    if (given.shape, given.dtype) != (array.shape, array.dtype):
      raise ValueError(
        f'its {name} is {given.dtype} of shape {given.shape} where '
        f'{array.dtype} of {array.shape} is wanted'
      )
  said = type(nothing)(**tree)
  said.check()
  return said
