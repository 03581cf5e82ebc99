"""Asks a finished run's nodes about its model, of examples that they held out.

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

from bfl_tf import training
from bfl_tf.federation import stopping
from bfl_tf.flower import messages, nodes
from bfl_tf.metrics import conformal
from bfl_tf.runs import flags_file
from bfl_tf.trained import model as trained_lib
from bfl_tf.trained import promises, reports, tallies

# At a time: an answer is small, and a node takes its time to import TensorFlow.
_WINDOW = 64


def ask(
  grid: serverapp.Grid,
  playing: nodes.Numbered,
  introduced: Mapping[int, messages.Introduction],
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
  introduced: Mapping[int, messages.Introduction]
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
    for client, reply in nodes.exchange(
      self.grid, self._errands(share, promise), _WINDOW, self.poll_seconds
    ):
      try:
        tree = messages.unpack(nodes.content(reply), sizes)
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

  def _errands(self, share, promise) -> Iterator[nodes.Errand]:
    flags = '\n'.join(flags_file.flag_lines(self.trained.config))
    task = self.trained.task.to_json()
    packed = messages.pack_arrays({'model': self.trained.weights})
    clients = sorted(set(self.introduced) - set(self.left_out))
    there = self.playing(clients)
    for client in clients:
      if client not in there:
        self.left_out[client] = f'{share} share: it has no SuperNode'
        continue
      text = promise.to_json() if promise else ''
      question = messages.Question(flags, client, task, share, text, {})
      message = flwr_app.Message(
        messages.pack(question, packed), there[client], 'evaluate'
      )
      yield nodes.Errand(client, message, self.seconds)


def _shaped(tree: Mapping[str, Any], nothing: _Said) -> _Said:
  """Returns what a node sent, if it is an answer at all."""
  for name, array in nothing._asdict().items():
    spec = tf.TensorSpec(array.shape, array.dtype)
    defect = training.mismatch(tree.get(name), spec)
    if defect:
      raise ValueError(f'its {name} {defect}')
  return type(nothing)(**tree)
