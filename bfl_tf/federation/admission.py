"""Validation of the clients' updates, and bounds on their size.

The server knows the client's number of examples, its steps and its learning
rates. The change of an accepted update is bounded by what was accepted in
earlier rounds, so that the bound depends neither on the order of arrival nor on
the other updates of the round. Notation: q the broadcast, u an update, m the
setting `--max_update_norm`. Three sizes of a change have bounds:
  mean     the L2 norm of the change of all means
  buffers  the L2 norm of the change of the moving statistics
  scale    the largest |log(s_u / s_q)| over the marginal standard deviations
The bound is m times the expected size. In the first round, the norm of the
broadcast is expected. Later it is the median over the last rounds of the median
over the accepted updates of a round. A minority of malicious clients moves
neither median. A larger change is scaled down to the bound (norm clipping), or
the update is rejected if client and server both sum it.

References:
  Z. Sun et al. Can you really backdoor federated learning? arXiv:1911.07963
  (norm clipping).
"""

from collections.abc import Mapping, Sequence
import math
from typing import Any, NamedTuple

import numpy as np

from bfl_tf import parts as parts_lib
from bfl_tf import statistics, training, trees
from bfl_tf.declare import user_code
from bfl_tf.federation import client as client_lib
from bfl_tf.federation import stopping
from bfl_tf.weights import Weights

# The square of a larger number overflows in float32.
_LARGEST = float(np.sqrt(np.finfo(np.float32).max))
# The square of a smaller scale underflows in float32.
_SMALLEST_SCALE = np.float32(np.sqrt(np.finfo(np.float32).tiny))
# Lower bound on the broadcast's root mean square, so that an update of a zero
# broadcast can be accepted, and on its scales if it is a point mass.
_LEAST_RMS, _LEAST_SCALE = 0.05, 1e-3
# Smallest expected change, relative to the first round's: of clients whose
# change can be scaled down, and of others. An honest client that returns from a
# poisoned broadcast takes a long step, and must not be rejected.
_LEAST_CHANGE, _LEAST_BEFORE_REJECTION = 1e-3, 0.5
# Factor on the bound of the moving statistics, which vary more between clients.
_MORE_BUFFERS = 2.0
# Smallest expected |log ratio|, of the same two kinds of clients.
_LEAST_LOG, _LEAST_LOG_BEFORE_REJECTION = 0.1, 0.6
# Largest ratio of scales in the first round if clients estimate their scales
# without those of the broadcast.
_FIRST_RATIO = 1e3
# Largest ratio of a low-rank factor to the scale. The square of a larger number
# leaves few digits of float64 for a product of posteriors.
_MOST_RATIO = np.float32(1e8)
# Largest root mean square of a part's vector, relative to the broadcast's.
_MOST_SENT = 1000.0
# Largest absolute value of a loss or of a number in a report. These numbers are
# columns of metrics.csv, and nothing else depends on them.
_MOST_REPORTED = 1e15
# Relative tolerance for rounding errors of sums over the steps of a client.
_ROUNDING = 0.01
# Number of rounds over which the median is taken.
_ROUNDS = 10
# Name of the slot of a state that contains the medians.
SLOT = 'admission'


class Sizes(NamedTuple):
  """Sizes of the change of an update, as in the notation above."""

  mean: float
  buffers: float
  scale: float


def fresh_history() -> np.ndarray:
  """Returns the medians before the first round, `[rounds, sizes]`, all NaN."""
  return np.full([_ROUNDS, len(Sizes._fields)], np.nan)


class Admission:
  """Validation of the updates of one round."""

  def __init__(
    self,
    expected: training.Result,
    reference: Weights,
    max_update_norm: float = 0.0,
    parts: Sequence[parts_lib.Local] = (),
    is_variance: Any = False,
    keeps_scale: bool = False,
    history: np.ndarray | None = None,
  ):
    """Begins a round.

    Args:
      expected: `tf.TensorSpec`s of the model, extras, memory and trace.
      max_update_norm: Largest size of a change, relative to the expected size;
        no bound if 0.
      keeps_scale: Whether training begins at the scales of the broadcast.
      history: Medians of the last rounds; None if they are not used.
    """
    self._expected, self._most = expected, max_update_norm
    # Client and server both sum means and scales, so nothing may change them.
    self._rejects = any(
      p.exact and p.has('memory') and isinstance(p, parts_lib.Server)
      for p in parts
    )
    self._reference, self._is_variance = reference, is_variance
    self._history, self._accepted = history, list[Sizes]()
    self._is_first = history is None or bool(np.isnan(history).all())
    self._limits = Sizes(math.inf, math.inf, math.inf)
    size = reference.loc.size + reference.point.size
    self._unit = _unit(reference.loc, reference.point)
    self._rms = self._unit / math.sqrt(size or 1)
    if max_update_norm:
      self._limits = self._limited(keeps_scale)

  def _limited(self, keeps_scale) -> Sizes:
    most, past = self._most, self._history
    buffers = _MORE_BUFFERS * _unit(self._reference.buffers)
    if past is None or self._is_first:
      ratio = max(most, 1.0) if keeps_scale else _FIRST_RATIO
      return Sizes(most * self._unit, most * buffers, math.log(ratio))
    known = past[~np.isnan(past).any(1)]
    share, log = _LEAST_CHANGE, _LEAST_LOG
    if self._rejects:
      share, log = _LEAST_BEFORE_REJECTION, _LEAST_LOG_BEFORE_REJECTION
    least = [share * self._unit, share * buffers, log]
    expected = np.maximum(_medians(known) * [1, _MORE_BUFFERS, 1], least)
    return Sizes(*(most * expected).tolist())

  def slots(self) -> dict[str, np.ndarray]:
    """Returns the medians after this round, by name of their slot."""
    if self._history is None or not self._accepted:
      return {}
    new = _medians(np.array(self._accepted))
    # NaN, which stands for no round, leaves the table first.
    return {SLOT: np.concatenate([self._history[1:], new[np.newaxis]])}

  def admit(
    self,
    client: int,
    update: Any,
    work: client_lib.Work | None = None,
  ) -> tuple[Any, str | None, bool]:
    """Validates an update and bounds its change.

    Args:
      work: Work of the client, which a malicious client could misstate; not
        compared if None.

    Returns:
      The update, the reason why it is rejected or None, and whether its change
      was scaled down.
    """

    def find():
      if isinstance(update, BaseException):
        return f'it raised {user_code.describe(update)}'
      return (
        _misstated(client, update, work)
        or _malformed(update, self._expected)
        or (work and _misreported(update.trace, work))
        or self._invalid(update.model)
        or self._beyond(update.extras)
      )

    defect = user_code.attempt(find)
    if isinstance(defect, BaseException):
      defect = f'it cannot be read: {type(defect).__name__}'
    if defect:
      return update, stopping.clean(defect), False
    if work:
      update = update._replace(rates=work.rates)
    sizes = self._sizes(update.model)
    larger = {
      name: f'{name} {size:.3g} exceeds {limit:.3g}'
      for name, size, limit in zip(Sizes._fields, sizes, self._limits)
      if not size <= limit
    }
    if self._rejects and (summed := larger.keys() - {'buffers'}):
      reasons = ', '.join(larger[name] for name in sorted(summed))
      reason = f'the change of its {reasons} (--max_update_norm)'
      return update, reason, False
    if larger:
      update = update._replace(model=self._scaled(update.model, sizes))
    self._accepted.append(Sizes(*map(min, sizes, self._limits)))
    return update, None, bool(larger)

  def _invalid(self, model) -> str | None:
    if np.any(model.scale < _SMALLEST_SCALE):
      return f'its scale is too small: the least is {_SMALLEST_SCALE:.2g}'
    most = _MOST_RATIO * model.scale
    if any(np.any(abs(row) > most) for row in model.factor):
      return f'its factor is more than {_MOST_RATIO:.2g} times its scale'
    if np.any(model.buffers[self._is_variance] < 0):
      return 'its moving variances are negative'
    return None

  def _sizes(self, model) -> Sizes:
    before = self._reference
    mean = math.hypot(
      _distance(model.loc, before.loc), _distance(model.point, before.point)
    )
    scale = 0.0
    for part in statistics.chunks(model.loc.size):
      ratio = self._ratio(model, part)
      scale = max(scale, math.log(ratio.max()), -math.log(ratio.min()))
    return Sizes(mean, _distance(model.buffers, before.buffers), scale)

  def _ratio(self, model, part=slice(None)) -> np.ndarray:
    before = self._reference.variance(part)
    if self._is_first:
      before = np.maximum(before, _LEAST_SCALE**2)
    return np.sqrt(model.variance(part) / before)

  def _scaled(self, model, sizes) -> Weights:
    """Returns the model with its change scaled down to the limits."""
    before, most = self._reference, self._limits

    def toward(name, share):
      start = getattr(before, name)
      change = share * (getattr(model, name).astype(np.float64) - start)
      return (start + change).astype(np.float32)

    shares = [min(1.0, limit / (size or 1)) for size, limit in zip(sizes, most)]
    ratio, largest = self._ratio(model), math.exp(most.scale)
    factor = np.clip(ratio, 1 / largest, largest) / ratio
    return Weights(
      loc=toward('loc', shares[0]),
      scale=(model.scale * factor).astype(np.float32),
      point=toward('point', shares[0]),
      buffers=toward('buffers', shares[1]),
      factor=(model.factor * factor).astype(np.float32),
    )

  def _beyond(self, extras: Mapping[str, Any]) -> str | None:
    """Compares the vector of each client part with the broadcast."""
    for name, vector in extras.items() if self._most else ():
      rms = _distance(vector, 0.0) / math.sqrt(vector.size or 1)
      if not rms <= _MOST_SENT * self._rms:
        return (
          f'its vector of {name} has the root mean square {rms:.3g}, more '
          f"than {_MOST_SENT:g} times the broadcast's {self._rms:.3g}"
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
  total = work.rates.sum()
  if abs(trace.sum_rates - total) > _ROUNDING * total:
    return (
      f'it reports learning rates with the sum {trace.sum_rates:.3g}, and '
      f'should have {total:.3g}'
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


def _medians(values) -> np.ndarray:
  # The lower median of two clients is not the mean with a malicious one.
  return np.quantile(values, 0.5, axis=0, method='lower')


def _unit(*vectors) -> float:
  """Returns the L2 norm of a broadcast, or that of small weights."""
  least = _LEAST_RMS * math.sqrt(sum(vector.size for vector in vectors))
  return max(math.hypot(*(_distance(v, 0.0) for v in vectors)), least)


def _distance(vector, other) -> float:
  """Returns the L2 norm of the difference of a vector to another or to 0."""
  total, flat = 0.0, vector.reshape(-1)
  # In a chunk, NumPy's dot product starts no threads. They would compete with
  # the workers for cores.
  for part in statistics.chunks(flat.size):
    change = np.subtract(
      flat[part], other[part] if np.ndim(other) else other, dtype=np.float64
    )
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
