"""Validation of the clients' updates."""

import math
from typing import Any

import numpy as np

from bfl_tf import statistics, training, trees
from bfl_tf.config import user_code
from bfl_tf.weights import Weights

# The square of a larger number overflows in float32.
_LARGEST = float(np.sqrt(np.finfo(np.float32).max))
# The square of a smaller scale underflows in float32.
_SMALLEST_SCALE = float(np.sqrt(np.finfo(np.float32).tiny))
# Lower bound on the broadcast's root mean square, so that an update of a zero
# broadcast can be accepted.
_LEAST_RMS = 0.01


class Admission:
  """Validation of the updates of one round."""

  def __init__(
    self,
    expected: training.Result,
    reference: Weights,
    max_update_norm: float = 0.0,
  ):
    """Begins a round.

    Args:
      expected: `tf.TensorSpec`s of the model, extras, memory and trace.
      reference: Broadcast model.
      max_update_norm: Largest L2 norm of the update of means and standard
        deviations, in units of the broadcast's norm; no bound if 0.
    """
    self._expected, self._most = expected, max_update_norm
    if max_update_norm:
      self._reference = _moments(reference)
      size = sum(moment.size for moment in self._reference)
      self._unit = max(_norm(self._reference), _LEAST_RMS * math.sqrt(size))

  def defect(
    self,
    client: int,
    update: statistics.ClientUpdate | BaseException,
    num_examples: int | None = None,
  ) -> str | None:
    """Returns the reason why an update is rejected, or None.

    Args:
      client: Number of the client that replied.
      update: The client's update, or the error that it raised.
      num_examples: Number of the client's examples, which a malicious client
        could overstate; not compared if None.
    """

    def find():
      if isinstance(update, BaseException):
        return f'it raised {user_code.describe(update)}'
      return (
        _misstated(client, update, num_examples)
        or _malformed(update, self._expected)
        or self._too_far(update.model)
      )

    found = user_code.attempt(find)
    if isinstance(found, BaseException):
      return f'it cannot be read: {type(found).__name__}'
    return found

  def _too_far(self, model) -> str | None:
    if not self._most:
      return None
    moved = _norm(_moments(model), self._reference)
    if moved <= self._most * self._unit:
      return None
    return (
      f'its update has the norm {moved:.3g}, more than --max_update_norm='
      f"{self._most:g} times the broadcast's {self._unit:.3g}"
    )


def _misstated(client, update, num_examples) -> str | None:
  stated, examples = update.client_id, update.num_examples
  if not isinstance(stated, int) or stated != client:
    return f'it calls itself client {stated}'
  if not isinstance(examples, int) or not 0 < examples < 2**31:
    return f'it trained on {examples} examples'
  if num_examples not in (None, examples):
    return f'it trained on {examples} examples, and has {num_examples}'
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
  if np.any(update.model.scale < _SMALLEST_SCALE):
    return f'its scale is below {_SMALLEST_SCALE:.2g}'
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
