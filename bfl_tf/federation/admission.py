"""Validation of the clients' updates.

Every number that a client sends has a declared bound. The server knows the
client's number of examples, its steps and its learning rates. The bound of the
model is relative to the broadcast. A client part declares the bounds of its
vector, which otherwise has the bound of the model.
"""

from collections.abc import Mapping, Sequence
import math
from typing import Any

import numpy as np

from bfl_tf import statistics, training, trees
from bfl_tf.declare import user_code
from bfl_tf.federation import client as client_lib
from bfl_tf.federation import stopping
from bfl_tf.weights import Weights

# The square of a larger number overflows in float32.
_LARGEST = float(np.sqrt(np.finfo(np.float32).max))
# The square of a smaller scale underflows in float32.
_SMALLEST_SCALE = float(np.sqrt(np.finfo(np.float32).tiny))
# Lower bound on the broadcast's root mean square, so that an update of a zero
# broadcast can be accepted.
_LEAST_RMS = 0.01
# Smallest ratio of scales to the broadcast's if the pooled posterior is a prior
# of the next round. Its square is a factor of the KL term of all clients.
_LEAST_RATIO = 1e-6
# Largest ratio of a low-rank factor to the scale. The square of a larger number
# leaves few digits of float64 for a product of posteriors.
_MOST_RATIO = np.float32(1e8)
# Largest absolute value of a loss or of a number in a report. These numbers are
# columns of metrics.csv, and nothing else depends on them.
_MOST_REPORTED = 1e15
# Relative tolerance for rounding errors of sums over the steps of a client.
_ROUNDING = 0.01


class Admission:
  """Validation of the updates of one round."""

  def __init__(
    self,
    expected: training.Result,
    reference: Weights,
    max_update_norm: float = 0.0,
    parts: Sequence[training.Part] = (),
    is_prior: bool = False,
  ):
    """Begins a round.

    Args:
      expected: `tf.TensorSpec`s of the model, extras, memory and trace.
      reference: Broadcast model.
      max_update_norm: Largest L2 norm of the update of means and standard
        deviations, in units of the broadcast's norm; no bound if 0.
      parts: Client parts, which declare the bounds of the extras.
      is_prior: Whether the priors of the next round depend on the pooled
        posterior.
    """
    self._expected, self._most = expected, max_update_norm
    self._parts = {part.name: part for part in parts}
    least = np.float32(_LEAST_RATIO) * reference.scale if is_prior else 0.0
    self._least_scale = np.maximum(np.float32(_SMALLEST_SCALE), least)
    if max_update_norm:
      self._reference = _moments(reference)
      size = sum(moment.size for moment in self._reference)
      self._unit = max(_norm(self._reference), _LEAST_RMS * math.sqrt(size))
      self._rms = self._unit / math.sqrt(size or 1)

  def defect(
    self,
    client: int,
    update: statistics.ClientUpdate | BaseException,
    work: client_lib.Work | None = None,
  ) -> str | None:
    """Returns the reason why an update is rejected, or None.

    Args:
      client: Number of the client that replied.
      update: The client's update, or the error that it raised.
      work: Work of the client, which a malicious client could misstate; not
        compared if None.
    """

    def find():
      if isinstance(update, BaseException):
        return f'it raised {user_code.describe(update)}'
      return (
        _misstated(client, update, work)
        or _malformed(update, self._expected)
        or (work and _misreported(update.trace, work))
        or self._too_far(update.model)
        or self._beyond(update.extras, update.trace)
      )

    found = user_code.attempt(find)
    if isinstance(found, BaseException):
      return f'it cannot be read: {type(found).__name__}'
    return found and stopping.clean(found)

  def _too_far(self, model) -> str | None:
    if np.any(model.scale < self._least_scale):
      least = float(np.max(self._least_scale))
      return f'its scale is too small: the least is {least:.2g}'
    most = _MOST_RATIO * model.scale
    if any(np.any(abs(row) > most) for row in model.factor):
      return f'its factor is more than {_MOST_RATIO:.2g} times its scale'
    if not self._most:
      return None
    moved = _norm(_moments(model), self._reference)
    if moved <= self._most * self._unit:
      return None
    return (
      f'its update has the norm {moved:.3g}, more than --max_update_norm='
      f"{self._most:g} times the broadcast's {self._unit:.3g}"
    )

  def _beyond(self, extras: Mapping[str, Any], trace) -> str | None:
    """Compares the vector of each client part with its declared bounds."""
    for name, vector in extras.items():
      bounds = self._parts[name].bounds(trace)
      if bounds:
        least, most = bounds
        if not (np.all(vector >= least) and np.all(vector <= most)):
          return f'its vector of {name} is not between {least} and {most}'
      elif self._most and vector.size:
        flat = np.asarray(vector.reshape(-1), np.result_type(vector, 'f'))
        rms = _norm((flat,)) / math.sqrt(vector.size)
        if not rms <= self._most * self._rms:
          return (
            f'its vector of {name} has the root mean square {rms:.3g}, more '
            f"than --max_update_norm={self._most:g} times the broadcast's "
            f'{self._rms:.3g}'
          )
    return None


def _misstated(client, update, work) -> str | None:
  stated, examples = update.client_id, update.num_examples
  if not isinstance(stated, int) or stated != client:
    return f'it calls itself client {stated}'
  if not isinstance(examples, int) or not 0 < examples < 2**31:
    return f'it trained on {examples} examples'
  if work and work.num_examples != examples:
    return f'it trained on {examples} examples, and has {work.num_examples}'
  return None


def _misreported(trace, work) -> str | None:
  if trace.steps != work.steps:
    return f'it reports {trace.steps} steps, and should take {work.steps}'
  if abs(trace.sum_rates - work.sum_rates) > _ROUNDING * work.sum_rates:
    return (
      f'it reports learning rates with the sum {trace.sum_rates:.3g}, and '
      f'should have {work.sum_rates:.3g}'
    )
  for name, number in {'loss': trace.loss, **trace.report}.items():
    if abs(number) > _MOST_REPORTED:
      return f'its {name} is beyond {_MOST_REPORTED:.2g}'
  return None


def _malformed(update, expected) -> str | None:
  if type(update.trace) is not type(expected.trace):
    return f'its trace is a {type(update.trace).__name__}'
  sent, wanted = _leaves(update), _leaves(expected)
  for name in {**wanted, **sent}:
    if name not in sent:
      return f'its {name} is missing'
    if name not in wanted:
      return f'its {name} was not expected'
    defect = training.mismatch(sent[name], wanted[name])
    if defect:
      return f'its {name} {defect}'
    if np.size(sent[name]) and not _is_bounded(sent[name]):
      is_finite = np.all(np.isfinite(sent[name]))
      much = f'beyond {_LARGEST:.2g}' if is_finite else 'not finite'
      return f'its {name} is {much}'
  return None


def _is_bounded(values) -> bool:
  # The comparisons are false for NaN.
  return np.min(values) >= -_LARGEST and np.max(values) <= _LARGEST


def _moments(model) -> tuple[np.ndarray, ...]:
  # Without a factor, the standard deviations are the scales.
  scale = np.sqrt(model.variance()) if len(model.factor) else model.scale
  return model.loc, model.point, scale


def _norm(moments, others=None) -> float:
  """Returns the L2 norm of the moments, or of the difference to others."""
  total = 0.0
  # The norm of a huge update is infinite.
  with np.errstate(over='ignore'):
    for i, moment in enumerate(moments):
      # In a chunk, NumPy's dot product starts no threads. They would compete
      # with the workers for cores.
      for part in statistics.chunks(moment.size):
        change = moment[part] - others[i][part] if others else moment[part]
        total += float(np.dot(change, change))
  return math.sqrt(total)


def _leaves(sent: statistics.ClientUpdate | training.Result) -> dict[str, Any]:
  """Returns all arrays, by their name in reasons of rejection."""
  tree = {
    'model': sent.model,
    'extra': sent.extras,
    'memory': sent.memory,
    'trace': sent.trace,
  }
  return {
    name.replace(trees.SEPARATOR, ' ').removeprefix('model '): leaf
    for name, leaf in trees.leaves(tree)
  }
