"""Federated evaluation of a finished run on examples held out by its nodes.

The first request collects score counts of the calibration shares, which
determine the prediction sets. The second collects statistics of the test
shares, including those of the prediction sets.
"""

from collections.abc import Iterator, Mapping
import dataclasses
import math
from typing import Any

from flwr import app as flwr_app
import numpy as np

from bfl_tf import training
from bfl_tf.analysis import (
  model,
  prediction_sets,
  reports,
  risk,
  site_statistics,
)
from bfl_tf.data import encoding
from bfl_tf.declare import user_code
from bfl_tf.federation import stopping
from bfl_tf.flower import data_summaries, messages, nodes
from bfl_tf.metrics import conformal
from bfl_tf.runs import directory, run_config
from bfl_tf.startup import tf

# Replies are small, and nodes import TensorFlow slowly: many run in parallel.
_WINDOW = 64


@dataclasses.dataclass
class FederatedEvaluation:
  """Evaluation of a finished run's model by its nodes."""

  numbered: nodes.SuperNodes
  introduced: Mapping[int, data_summaries.DataSummary]
  trained: model.Trained
  score: str
  run: str = ''
  seconds: float = math.inf
  sets_by: str = ''
  choice: risk.Risk = risk.DEFAULT
  rejected: dict[int, str] = dataclasses.field(default_factory=dict)
  names: dict[int, str] = dataclasses.field(init=False)

  def __post_init__(self):
    trained = self.trained
    self.names = {c: str(c) for c in range(trained.config.num_clients)}
    if trained.task.is_numeric:
      self.score = prediction_sets.RESIDUAL

  def report(self) -> reports.Report:
    """Evaluates the calibration shares, then the test shares."""
    trained, sets, task = self.trained, None, self.trained.task
    has_calibration = bool(trained.config.calibration_fraction)
    risk.check(self.choice, task.classes, has_calibration)
    counts: dict[str, site_statistics.HeldCounts] = {}
    if has_calibration:
      answers = self._answers('calibration', None)
      counts = {self.names[client]: each for client, each in answers.items()}
      sets = prediction_sets.PredictionSets.of(
        {name: each.counts for name, each in counts.items()},
        trained.num_samples(), self.score, self.sets_by, task.classes,
      )  # fmt: skip
    answers = self._answers('test', sets)
    own: Mapping[int, Any] = {}
    if trained.has_personal_models:
      own = self._answers('personal', None)
    by_name = {self.names[client]: sums for client, sums in answers.items()}
    rounds = directory.contributions(self.run) if self.run else {}
    missing = {
      self.names[c]: encoding.missing_fraction(s.features, s.moments.mean)
      for c, s in self.introduced.items()
      if s.features
    }
    report = reports.Report.of(
      trained,
      by_name,
      site_statistics.merged(by_name),
      sets,
      {
        self.names[client]: reports.own_row('personal', sums, None)
        for client, sums in own.items()
      },
      counts,
      self.choice,
      {self.names[int(c)]: pair for c, pair in rounds.items()},
      missing,
    )
    rejected = {self.names[c]: w for c, w in sorted(self.rejected.items())}
    return dataclasses.replace(report, rejected=rejected)

  def _like(self, share: str, sets: Any) -> Any:
    """Returns the sums of an example; their shapes are those of any reply."""
    one, task = np.ones(1, np.float32), self.trained.task
    prediction: Any = model.NumericPrediction(one, one, one, one)
    if not task.is_numeric:
      probs = np.eye(task.num_classes)[:1]
      prediction = model.Prediction(probs, one, one, one)
    y = np.zeros(1, int)
    if share == 'calibration':
      return site_statistics.HeldCounts.of(prediction, y, self.score)
    return site_statistics.of(prediction, y, sets)

  def _answers(
    self, share: str, sets: prediction_sets.PredictionSets | None
  ) -> dict[int, Any]:
    """Returns the valid replies by client, in the order of client numbers."""
    sums_by_client, like = {}, self._like(share, sets)
    for client, reply in nodes.exchange(
      self.numbered.grid, self._messages(share, sets), _WINDOW, self.seconds
    ):
      sizes = self.introduced[client].held
      num_examples = sizes['test' if share == 'personal' else share]
      sums = user_code.attempt(_read, reply, like, num_examples)
      if isinstance(sums, BaseException):
        self.rejected[client] = stopping.clean(f'{share} share: {sums}')
        continue
      sums_by_client[client], name = sums
      # With the number in front, a name is unique and never a formula.
      self.names[client] = f'{client} {stopping.clean(name)[:40]}'.strip()
    wanted = self.trained.config.min_clients
    if len(sums_by_client) < wanted:
      raise stopping.TooFewClientsError(
        f'{len(sums_by_client)} answers on the {share} share are fewer than '
        f'--min_clients={wanted} ({stopping.reasons(self.rejected)}).'
      )
    # A fixed order of sums makes results independent of arrival times.
    return dict(sorted(sums_by_client.items()))

  def _messages(self, share, sets) -> Iterator[tuple[int, flwr_app.Message]]:
    flags = '\n'.join(run_config.flag_lines(self.trained.config))
    task = self.trained.task.to_json()
    packed = messages.pack_arrays({'model': self.trained.weights})
    clients = sorted(set(self.introduced) - set(self.rejected))
    there = self.numbered(clients)
    for client in clients:
      if client not in there:
        self.rejected[client] = f'{share} share: it has no SuperNode'
        continue
      state = self.trained.state
      memory = state.memories.get(client, {}) if state else {}
      limits = sets.at(self.names[client]).limits if sets else np.zeros(0)
      limits = np.round(limits * conformal.NUM_BINS)
      question = messages.Question(
        flags, client, task, share, self.score, limits.astype(np.int32), {},
        self.run, int(memory.get('round', -1)),
      )  # fmt: skip
      message = flwr_app.Message(
        messages.pack(question, packed), there[client], 'evaluate'
      )
      yield client, message


def _read(reply, like, num_examples) -> tuple[Any, str]:
  """Returns the checked sums of a reply, and the name of its node."""
  arrays = messages.unpack(nodes.content(reply))
  for name, array in like._asdict().items():
    spec = tf.TensorSpec(array.shape, array.dtype)
    if defect := training.mismatch(arrays.get(name), spec):
      raise ValueError(f'its {name} {defect}')
  sums = like._replace(**{name: arrays[name] for name in like._fields})
  sums.check(num_examples)
  return sums, str(arrays.get('name', ''))
