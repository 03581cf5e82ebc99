"""Federated evaluation of a finished run on examples held out by its nodes.

The first request collects score counts of the calibration shares, which
determine the prediction sets. The second collects statistics of the test
shares, including those of the prediction sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
from bfl_tf.runs import directory, flags_file
from bfl_tf.startup import tf

# Replies are small, and nodes import TensorFlow slowly: many run in parallel.
_WINDOW = 64


@dataclasses.dataclass
class FederatedEvaluation:
  """Evaluation of a finished run's model by its nodes.

  Attributes:
    rejected: Reason for a missing or invalid reply, by client.
    names: Client number and name of the node, by client.
    sets_by: Which groups have thresholds of their own, as in
      `PredictionSets.of`.
    choice: Choices for the risk of an event, for two classes.
  """

  numbered: nodes.SuperNodes
  introduced: Mapping[int, data_summaries.DataSummary]
  trained: model.Trained
  score: str
  run: str = ''
  seconds: float = math.inf
  sets_by: str = ''
  choice: risk.Choice = risk.DEFAULT
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
    trained, sets, task = self.trained, None, self.trained.task
    has_held = bool(trained.config.calibration_fraction)
    risk.check(self.choice, task.classes, has_held)
    prediction_sets.check_groups(self.sets_by, task.is_numeric)
    held: dict[str, Mapping[str, np.ndarray]] = {}
    if has_held:
      answers = self._answers(
        'calibration',
        None,
        site_statistics.held_counts(*self._example, self.score),
        _check_held,
      )
      held = {self.names[client]: each for client, each in answers.items()}
      sets = prediction_sets.PredictionSets.of(
        {name: each['counts'] for name, each in held.items()},
        trained.num_samples(), self.score, self.sets_by, task.classes,
      )  # fmt: skip
    found = self._statistics('test', sets)
    own: Mapping[int, Any] = {}
    if trained.has_personal_models:
      own = self._statistics('personal', None)
    by_name = {self.names[client]: sums for client, sums in found.items()}
    report = reports.Report.of(
      trained,
      by_name,
      site_statistics.merged(by_name),
      sets,
      list(self.names.values()),
      {
        self.names[client]: reports.own_row('personal', sums, None)
        for client, sums in own.items()
      },
      held,
      self.choice,
      self._facts(),
    )
    rejected = {self.names[c]: w for c, w in sorted(self.rejected.items())}
    return dataclasses.replace(report, rejected=rejected)

  def _statistics(self, share: str, sets: Any) -> dict[int, Any]:
    """Returns statistics by client; arguments as in `_answers`."""
    like = site_statistics.of(*self._example, sets)
    made: Any = type(like)
    answers = self._answers(
      share,
      sets,
      like._asdict(),
      lambda arrays, size: made(**arrays).check(size),
    )
    return {client: made(**arrays) for client, arrays in answers.items()}

  @property
  def _example(self) -> tuple[Any, np.ndarray]:
    """A prediction with its label: shapes of sums do not depend on them."""
    one, task = np.ones(1, np.float32), self.trained.task
    prediction: Any = model.NumericPrediction(one, one, one, one)
    if not task.is_numeric:
      probs = np.eye(task.num_classes)[:1]
      prediction = model.Prediction(probs, one, one, one)
    return prediction, np.zeros(1, int)

  def _facts(self) -> dict[str, dict[str, Any]]:
    """Returns updates and missing cells of each site."""
    rounds = directory.contributions(self.run) if self.run else {}
    return reports.facts(
      {self.names[int(client)]: pair for client, pair in rounds.items()},
      {
        self.names[client]: encoding.missing_fraction(
          each.features, each.moments.mean
        )
        for client, each in self.introduced.items()
        if each.features
      },
    )

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


def _check_held(arrays, num_examples):
  for counts in arrays.values():
    site_statistics.check_counts(counts, num_examples)


def _read(reply, like) -> Mapping[str, np.ndarray]:
  """Returns the arrays of a reply after a check of shapes and dtypes."""
  arrays = messages.unpack(nodes.content(reply))
  for name, array in like.items():
    spec = tf.TensorSpec(array.shape, array.dtype)
    if defect := training.mismatch(arrays.get(name), spec):
      raise ValueError(f'its {name} {defect}')
  return arrays
