"""What nodes say of a finished run's model, each of examples that it held out.

They are asked twice: how often each score occurs in their calibration shares,
which makes the promise; then what their test shares add up to, sets by that
promise among it.
"""

from collections.abc import Iterator, Mapping
import dataclasses
import functools
import math
from typing import Any, NamedTuple, TypeVar

from flwr import app as flwr_app
from flwr import serverapp
import numpy as np
import tensorflow as tf

from bfl_tf import metrics, training
from bfl_tf import weights as weights_lib
from bfl_tf.federation import stopping
from bfl_tf.flower import exchange, introductions, messages, nodes, sites
from bfl_tf.metrics import conformal
from bfl_tf.runs import flags_file as recorded
from bfl_tf.runs import promises
from bfl_tf.runs import task as task_lib
from bfl_tf.trained import model as trained_lib
from bfl_tf.trained import reports, tallies

# At a time: an answer is small, and a node takes its time to import TensorFlow.
_WINDOW = 64


class Question(NamedTuple):
  """What one node is asked.

  Attributes:
    flags: the config, as of `recorded.flag_lines`, a line each.
    client: the node's number.
    task: a `Task` as JSON.
    share: `calibration` or `test`.
    promise: as JSON, by which sets are made of the test share; nothing if no
      node held out a calibration share.
  """

  flags: str
  client: int
  task: str
  share: str
  promise: str

  def write(self, packed: flwr_app.ArrayRecord) -> flwr_app.RecordDict:
    """Returns the message; `packed` is the model, packed once for all."""
    record = flwr_app.ConfigRecord(self._asdict())
    return flwr_app.RecordDict({'arrays': packed, 'config': record})


def read(content: flwr_app.RecordDict) -> tuple[Question, weights_lib.Weights]:
  """Reads what `Question.write` wrote: it, and the model that is asked."""
  fields: Mapping[str, Any] = content.config_records['config']
  tree = messages.unpacked(content.array_records['arrays'])
  return Question(**fields), weights_lib.Weights(**tree['model'])


def answer(
  question: Question, model: weights_lib.Weights, own: sites.Own
) -> dict[str, np.ndarray]:
  """Returns what a node says: sums over examples of its own file.

  Args:
    question: of the server.
    model: that is asked.
    own: the node's own file.

  Raises:
    ValueError: it has no such examples, or will not tell so much of them.
  """
  if not own.data:
    raise ValueError('this node has no file of its own')
  if question.share not in ('calibration', 'test'):
    raise ValueError('it says nothing of examples that it trains on')
  config, dataset = sites.read(question.flags, own)
  split = getattr(dataset, question.share)
  if split is None or not len(split.y):
    raise ValueError(f'its file holds out no {question.share} share')
  task = task_lib.Task.from_json(question.task)
  if tuple(dataset.feature_names) != task.feature_names:
    raise ValueError('its file has other columns than the run')
  promise = _promise(question.promise)
  training.configure(1, config.deterministic)
  trained = trained_lib.Trained(config.replace(num_workers=1), task, model)
  probs = trained.predict(split.x).probs
  y = introductions.numbers(dataset, task.classes)[split.y]
  if question.share == 'calibration':
    return {'counts': metrics.score_counts(probs, y)}
  return tallies.Tally.of(probs, y, promise)._asdict()


def _promise(text) -> promises.Promise | None:
  """Refuses one that nobody makes, which could tell an example's score."""
  if not text:
    return None
  promise = promises.Promise.from_json(text)
  edges = np.array(promise.thresholds) * conformal.NUM_BINS
  if promise.levels != promises.LEVELS or np.any(
    np.abs(edges - np.round(edges)) > 1e-6
  ):
    raise ValueError('it tells of no sets but those of a promise')
  return promise


def ask(
  grid: serverapp.Grid,
  playing: nodes.Numbered,
  introduced: Mapping[int, introductions.Introduction],
  trained: trained_lib.Trained,
  seconds: float = math.inf,
  poll_seconds: float = 1.0,
) -> reports.Report:
  """Has a finished run's nodes score its model.

  Args:
    grid: Flower's.
    playing: who plays which client.
    introduced: by client, what its node said of its file.
    trained: the run's model.
    seconds: in which an answer is waited for.
    poll_seconds: between two looks for answers.

  Raises:
    TooFewClientsError: fewer than `--min_clients` said something good.
  """
  asking = _Asking(grid, playing, introduced, trained, seconds, poll_seconds)
  promise = None
  if trained.config.calibration_fraction:
    counts = asking.answers('calibration', None, _Counts.nothing())
    arrays = [said.counts for said in counts.values()]
    promise = promises.Promise.of(arrays, trained.num_samples())
  levels = promise.levels if promise else ()
  nothing = tallies.Tally.nothing(trained.task.num_classes, len(levels))
  said = asking.answers('test', promise, nothing)
  report = reports.Report.of(
    trained,
    {str(client): tally for client, tally in said.items()},
    functools.reduce(tallies.Tally.merge, said.values()),
    promise,
    list(map(str, range(trained.config.num_clients))),
  )
  left_out = {str(c): why for c, why in sorted(asking.left_out.items())}
  return dataclasses.replace(report, left_out=left_out)


class _Counts(NamedTuple):
  """How often each calibration score occurs: `[num_bins]` integers."""

  counts: np.ndarray

  @classmethod
  def nothing(cls) -> '_Counts':
    return cls(np.zeros(conformal.NUM_BINS, np.int64))

  def check(self, num_examples: int) -> None:
    """As of `Tally.check`."""
    tallies.check_counts(self.counts, num_examples)


_Said = TypeVar('_Said', tallies.Tally, _Counts)


@dataclasses.dataclass
class _Asking:
  """The arguments of `ask`, and by client why nothing good came."""

  grid: serverapp.Grid
  playing: nodes.Numbered
  introduced: Mapping[int, introductions.Introduction]
  trained: trained_lib.Trained
  seconds: float
  poll_seconds: float
  left_out: dict[int, str] = dataclasses.field(default_factory=dict)

  def answers(
    self, share: str, promise: promises.Promise | None, nothing: _Said
  ) -> dict[int, _Said]:
    """Returns what came of those who are not left out yet, in their order.

    Args:
      share: as of `Question`.
      promise: likewise.
      nothing: what an answer of no examples is.
    """
    found: dict[int, _Said] = {}
    sizes = {name: array.nbytes for name, array in nothing._asdict().items()}
    for client, reply in exchange.exchange(
      self.grid, self._errands(share, promise), _WINDOW, self.poll_seconds
    ):
      try:
        tree = messages.unpack(exchange.content(reply), sizes)
        said = _shaped(tree, nothing)
        said.check(self.introduced[client].held[share])
        found[client] = said
      # Whatever somebody sends, it is this node's alone.
      except Exception as failure:
        self.left_out[client] = f'{share} share: {failure}'
    wanted = self.trained.config.min_clients
    if len(found) < wanted:
      raise stopping.TooFewClientsError(
        f'{len(found)} answers on the {share} share are fewer than '
        f'--min_clients={wanted} ({stopping.reasons(self.left_out)}).'
      )
    # Floats add up in this order, whoever answers first.
    return dict(sorted(found.items()))

  def _errands(self, share, promise) -> Iterator[exchange.Errand]:
    flags = '\n'.join(recorded.flag_lines(self.trained.config))
    task = self.trained.task.to_json()
    packed = messages.pack({'model': self.trained.weights})
    clients = sorted(set(self.introduced) - set(self.left_out))
    there = self.playing(clients)
    for client in clients:
      if client not in there:
        self.left_out[client] = f'{share} share: it has no SuperNode'
        continue
      text = promise.to_json() if promise else ''
      question = Question(flags, client, task, share, text)
      message = flwr_app.Message(
        question.write(packed), there[client], 'evaluate'
      )
      yield exchange.Errand(client, message, self.seconds)


def _shaped(tree: Mapping[str, Any], nothing: _Said) -> _Said:
  """Returns what a node sent, if it is an answer at all."""
  for name, array in nothing._asdict().items():
    spec = tf.TensorSpec(array.shape, array.dtype)
    defect = training.mismatch(tree.get(name), spec)
    if defect:
      raise ValueError(f'its {name} {defect}')
  return type(nothing)(**tree)
