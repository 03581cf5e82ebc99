"""Tests of the reduction of updates: weights, pooling and statistics."""

import numpy as np
import toys

from bfl_tf import parts, statistics
from bfl_tf.federation import reduction
from bfl_tf.server import pooling

RULE = pooling.RULES['nwa']()
REFERENCE = toys.model(point=[0, 0])
UPDATES = [
  statistics.ClientUpdate(
    k, size, REFERENCE._replace(point=np.float32([size, 1 / 3 + k]))
  )
  for k, size in enumerate((1, 2, 5))
]


class Seen(parts.Server):
  """A server part that records its arguments."""

  def __init__(self):
    self.given = []

  def terms(self, update, weight, broadcast):
    self.given.append((update.client_id, weight))
    return {'double': 2 * weight}


def reduction_of(weighting, seen=None):
  named = {'rule': RULE} | ({'seen': seen} if seen else {})
  return reduction.Reduction(named, pooling.WEIGHTINGS[weighting](), REFERENCE)


def reduce(weighting, updates=UPDATES, seen=None):
  """Returns the pooled model, the sums and the columns."""
  made = reduction_of(weighting, seen)
  for update in updates:
    made.add(update)
  sums, info = made.finish()
  ctx = parts.ServerContext(REFERENCE)
  return RULE.step(REFERENCE, sums['rule'], None, ctx).model, sums, info


def test_the_pooled_model_and_weights_equal_those_computed_by_hand():
  seen = Seen()
  pooled, sums, info = reduce('size', seen=seen)
  # (1 1 + 2 2 + 5 5) / 8 and (1/3 + 2 4/3 + 5 7/3) / 8.
  np.testing.assert_allclose(pooled.point, [30 / 8, 44 / 24], rtol=1e-6)
  assert seen.given == [(0, 1.0), (1, 2.0), (2, 5.0)]
  assert sums['seen'] == {
    'weight': 8, 'max_weight': 5, 'count': 3, 'double': 16
  }  # fmt: skip
  assert info == {'weight_guards': 0}


def test_a_weighting_that_needs_all_updates_waits_for_them():
  seen = Seen()
  made = reduction_of('max_discrepancy', seen)
  for update in reversed(UPDATES):
    made.add(update)
  # The terms of each update are tested before all weights are known.
  assert seen.given == [(2, 1.0), (1, 1.0), (0, 1.0)]
  made.finish()
  assert [client for client, _ in seen.given[3:]] == [0, 1, 2]
