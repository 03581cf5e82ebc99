"""Federated evaluation of a finished run on examples held out by its nodes.

The first request collects score counts of the calibration shares, which
determine the prediction sets. The second collects statistics of the test
shares, including those of the prediction sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
import dataclasses
import functools
import math
from typing import Any

from flwr import app as flwr_app
import numpy as np

from bfl_tf import training
from bfl_tf.analysis import model, prediction_sets, reports, site_statistics
from bfl_tf.declare import user_code
from bfl_tf.federation import stopping
from bfl_tf.flower import data_summaries, messages, nodes
from bfl_tf.metrics import conformal
from bfl_tf.runs import flags_file
from bfl_tf.startup import tf

# Replies are small, and nodes import TensorFlow slowly: many run in parallel.
_WINDOW = 64


@dataclasses.dataclass
class FederatedEvaluation:
  """Evaluation of a finished run's model by its nodes.

  Attributes:
    rejected: Reason for a missing or invalid reply, by client.
    names: Client number and name of the node, by client.
  """

  numbered: nodes.SuperNodes
  introduced: Mapping[int, data_summaries.DataSummary]
  trained: model.Trained
  score: str
  run: str = ''
  seconds: float = math.inf
  rejected: dict[int, str] = dataclasses.field(default_factory=dict)
  names: dict[int, str] = dataclasses.field(init=False)

  def __post_init__(self):
    trained = self.trained
    self.names = {c: str(c) for c in range(trained.config.num_clients)}
    if trained.task.is_numeric:
      self.score = prediction_sets.RESIDUAL

  def report(self) -> reports.Report:
    """Evaluates the calibration shares, then the test shares.

    Raises:
      TooFewClientsError: Fewer than `--min_clients` sent a valid reply.
    """
    trained, sets = self.trained, None
    if trained.config.calibration_fraction:
      answers = self._answers(
        'calibration',
        None,
        {'counts': np.zeros(conformal.NUM_BINS, np.int64)},
        lambda arrays, size: site_statistics.check_counts(
          arrays['counts'], size
        ),
      )
      counts = [arrays['counts'] for arrays in answers.values()]
      sets = prediction_sets.PredictionSets.of(
        counts, trained.num_samples(), self.score
      )
    found = self._statistics('test', sets)
    own: Mapping[int, Any] = {}
    if trained.has_personal_models:
      own = self._statistics('personal', None)
    by_name = {self.names[client]: sums for client, sums in found.items()}
    report = reports.Report.of(
      trained,
      by_name,
      functools.reduce(lambda a, b: a.merge(b), by_name.values()),
      sets,
      list(self.names.values()),
      {
        self.names[client]: reports.own_row('personal', sums, None)
        for client, sums in own.items()
      },
    )
    rejected = {self.names[c]: w for c, w in sorted(self.rejected.items())}
    return dataclasses.replace(report, rejected=rejected)

  def _statistics(self, share: str, sets: Any) -> dict[int, Any]:
    """Returns statistics by client; arguments as in `_answers`."""
    # Shapes and dtypes do not depend on the example.
    one, task = np.ones(1, np.float32), self.trained.task
    like = site_statistics.of(
      model.NumericPrediction(one, one, one, one)
      if task.is_numeric
      else model.Prediction(np.eye(task.num_classes)[:1], one, one, one),
      np.zeros(1, int),
      sets,
    )
    made: Any = type(like)
    answers = self._answers(
      share,
      sets,
      like._asdict(),
      lambda arrays, size: made(**arrays).check(size),
    )
    return {client: made(**arrays) for client, arrays in answers.items()}

  def _answers(
    self,
    share: str,
    sets: prediction_sets.PredictionSets | None,
    like: Mapping[str, np.ndarray],
    check: Callable[[Mapping[str, np.ndarray], int], None],
  ) -> dict[int, Mapping[str, np.ndarray]]:
    """Returns the valid replies by client, in the order of client numbers."""
    found: dict[int, Mapping[str, np.ndarray]] = {}
    for client, reply in nodes.exchange(
      self.numbered.grid, self._messages(share, sets), _WINDOW, self.seconds
    ):
      arrays = user_code.attempt(_read, reply, like)
      if not isinstance(arrays, BaseException):
        sums = {name: arrays[name] for name in like}
        held = self.introduced[client].held
        num_examples = held['test' if share == 'personal' else share]
        if error := user_code.attempt(check, sums, num_examples):
          arrays = error
      if isinstance(arrays, BaseException):
        self.rejected[client] = stopping.clean(f'{share} share: {arrays}')
        continue
      found[client] = sums
      # With the number in front, a name is unique and never a formula.
      name = stopping.clean(str(arrays.get('name', '')))[:40]
      self.names[client] = f'{client} {name}'.strip()
    wanted = self.trained.config.min_clients
    if len(found) < wanted:
      raise stopping.TooFewClientsError(
        f'{len(found)} answers on the {share} share are fewer than '
        f'--min_clients={wanted} ({stopping.reasons(self.rejected)}).'
      )
    # A fixed order of sums makes results independent of arrival times.
    return dict(sorted(found.items()))

  def _messages(self, share, sets) -> Iterator[tuple[int, flwr_app.Message]]:
    flags = '\n'.join(flags_file.flag_lines(self.trained.config))
    task = self.trained.task.to_json()
    thresholds = sets.thresholds if sets else ()
    limits = np.round(np.multiply(thresholds, conformal.NUM_BINS))
    packed = messages.pack_arrays({'model': self.trained.weights})
    clients = sorted(set(self.introduced) - set(self.rejected))
    there = self.numbered(clients)
    for client in clients:
      if client not in there:
        self.rejected[client] = f'{share} share: it has no SuperNode'
        continue
      state = self.trained.state
      memory = state.memories.get(client, {}) if state else {}
      question = messages.Question(
        flags, client, task, share, self.score, limits.astype(np.int32), {},
        self.run, int(memory.get('round', -1)),
      )  # fmt: skip
      message = flwr_app.Message(
        messages.pack(question, packed), there[client], 'evaluate'
      )
      yield client, message


def _read(reply, like) -> Mapping[str, np.ndarray]:
  """Returns the arrays of a reply after a check of shapes and dtypes."""
  arrays = messages.unpack(nodes.content(reply))
  for name, array in like.items():
    spec = tf.TensorSpec(array.shape, array.dtype)
    if defect := training.mismatch(arrays.get(name), spec):
      raise ValueError(f'its {name} {defect}')
  return arrays
