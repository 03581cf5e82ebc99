"""What may enter a round, and why something may not.

All that a client sent, and all that is to be kept for it, is looked at before
anything reads it.
"""

import math
from typing import Any

import numpy as np

from bfl_tf import own, training, trees
from bfl_tf import weights as weights_lib
from bfl_tf.federation import engine as engine_lib

# Beyond it a number has no square in float32, and a model of it no logits.
_LARGEST = float(np.sqrt(np.finfo(np.float32).max))
# A scale below it has no variance there.
_SMALLEST_SCALE = float(np.sqrt(np.finfo(np.float32).tiny))
# The root mean square that a broadcast has at least where a norm is compared
# with its own: an update of a broadcast of zeros may be admitted too.
_LEAST_RMS = 0.01


def find_defect(
  arrival: engine_lib.Arrival,
  like: training.Result,
  reference: weights_lib.Weights,
  max_update_norm: float = 0.0,
  num_examples: int | None = None,
) -> str | None:
  """Says why an update must not be pooled, or returns None.

  Args:
    arrival: what came of a client's training.
    like: `tf.TensorSpec`s of a good one's model, extras, memory and trace.
    reference: what was broadcast.
    max_update_norm: Largest L2 norm of the update of means and standard
      deviations, in units of the broadcast's norm; no bound if 0.
    num_examples: that the client has; who could say more would weigh more. Any
      number if None.
  """
  try:
    if arrival.failure is not None:
      return f'it raised {own.describe(arrival.failure)}'
    if arrival.update is None:
      return 'it sent nothing'
    return (
      _misstated(arrival, num_examples)
      or _malformed(arrival, like)
      or _too_far(arrival.update.model, reference, max_update_norm)
    )
  # Whatever was sent, looking at it ends nobody's round.
  except Exception as error:
    return f'it cannot be read: {type(error).__name__}'


def _misstated(arrival, num_examples) -> str | None:
  """What an update says of its client."""
  said, examples = arrival.update.client_id, arrival.update.num_examples
  if not isinstance(said, int) or said != arrival.client:
    return f'it calls itself client {said}'
  if not isinstance(examples, int) or not 0 < examples < 2**31:
    return f'it trained on {examples} examples'
  if num_examples not in (None, examples):
    return f'it trained on {examples} examples, and has {num_examples}'
  return None


def _malformed(arrival, like) -> str | None:
  """What is no array as was asked for, or not finite."""
  update = arrival.update
  if type(update.trace) is not type(like.trace):
    return f'its trace is a {type(update.trace).__name__}'
  sent = _leaves(update.model, update.extras, arrival.memory, update.trace)
  wanted = _leaves(like.model, like.extra, like.memory, like.trace)
  for name in {**wanted, **sent}:
    if name not in sent:
      return f'its {name} is missing'
    if name not in wanted:
      return f'its {name} is more than it was asked for'
    defect = training.mismatch(sent[name], wanted[name])
    if defect:
      return f'its {name} {defect}'
    if not np.all(np.isfinite(sent[name])):
      return f'its {name} is not finite'
    if np.any(np.abs(sent[name]) > _LARGEST):
      return f'its {name} is beyond {_LARGEST:.2g}'
  if np.any(update.model.scale < _SMALLEST_SCALE):
    return f'its scale is below {_SMALLEST_SCALE:.2g}'
  return None


def _too_far(model, reference, most) -> str | None:
  if not most:
    return None
  before, after = (
    np.concatenate([weights.mean, np.sqrt(weights.variance())])
    for weights in (reference, model)
  )
  # Not linalg.norm: the threads of its dot product wait on the workers' cores.
  moved, norm = (
    math.sqrt(np.sum(np.square(v, dtype=np.float64)))
    for v in (after - before, before)
  )
  norm = max(norm, _LEAST_RMS * math.sqrt(before.size))
  if moved > most * norm:
    return (
      f'its update has the norm {moved:.3g}, more than --max_update_norm='
      f"{most:g} times the broadcast's {norm:.3g}"
    )
  return None


def _leaves(model, extras, memory, trace) -> dict[str, Any]:
  """Returns all arrays by the name that a message calls them."""
  tree = {'model': model, 'extra': extras, 'memory': memory, 'trace': trace}
  return {
    name.replace(trees.SEPARATOR, ' ').removeprefix('model '): leaf
    for name, leaf in trees.leaves(tree)
  }
