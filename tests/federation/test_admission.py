"""What a client sends is looked at whole before anything reads it."""

import numpy as np
import pytest
import tensorflow as tf

from bfl_tf import statistics, training, weights
from bfl_tf.federation import admission, engine

TWO, ONE = np.float32([1, 2]), np.float32([3])
MODEL = weights.Weights(TWO, TWO, ONE, ONE)
TRACE = training.Trace(np.int32(4), np.float32(0.4), np.float32(2.0))
MEMORY = {'part': {'rounds': np.int32(1), 'deep': {'sums': TWO}}}
UPDATE = statistics.ClientUpdate(3, 10, MODEL, {'part': ONE}, TRACE)
LIKE = training.Result(
  *tf.nest.map_structure(
    lambda value: tf.TensorSpec(np.shape(value), value.dtype),
    (MODEL, {'part': ONE}, MEMORY, TRACE),
  )
)


class Unprintable(Exception):
  def __str__(self):
    raise RuntimeError


def defect(memory=MEMORY, failure=None, update=UPDATE, limit=(), **changes):
  update = update and update._replace(**changes)
  arrival = engine.Arrival(3, update, memory, failure)
  return admission.find_defect(arrival, LIKE, *limit)


def test_a_good_update_has_none():
  assert defect() is None


@pytest.mark.parametrize(
  ('value', 'reason'),
  [
    (None, 'is of type NoneType, not an array'),
    ([3.0], 'is of type list, not an array'),
    (tf.constant([3.0]), 'is of type EagerTensor, not an array'),
    (np.array([3]), 'is int64, not float32'),
    (np.array([True]), 'is bool, not float32'),
    (np.array(['3']), 'is <U1, not float32'),
    (np.array([None]), 'is object, not float32'),
    (np.float64([3]), 'is float64, not float32'),
    (np.float32(3), 'has shape (), not (1,)'),
    (np.float32([[3]]), 'has shape (1, 1), not (1,)'),
    (np.float32([np.nan]), 'is not finite'),
    (np.float32([-np.inf]), 'is not finite'),
    # Its square is not.
    (np.float32([1e20]), 'is beyond 1.8e+19'),
    (np.float32([-3e38]), 'is beyond 1.8e+19'),
  ],
)
def test_one_vector_is_bad(value, reason):
  assert defect(model=MODEL._replace(point=value)) == f'its point {reason}'
  assert defect(extras={'part': value}) == f'its extra part {reason}'


@pytest.mark.parametrize(
  ('changes', 'reason'),
  [
    ({'update': None}, 'it sent nothing'),
    ({'update': None, 'failure': OSError()}, 'it raised OSError: '),
    ({'num_examples': 0}, 'it trained on 0 examples'),
    ({'num_examples': 2.5}, 'it trained on 2.5 examples'),
    ({'num_examples': None}, 'it trained on None examples'),
    ({'num_examples': True}, 'it trained on True examples'),
    ({'num_examples': TWO}, 'it trained on ndarray examples'),
    ({'client_id': TWO}, 'it calls itself client ndarray'),
    ({'client_id': 4}, 'it calls itself client 4'),
    (
      {'update': None, 'failure': Unprintable()},
      'it raised Unprintable: its message raised RuntimeError',
    ),
    ({'model': None}, 'its loc is missing'),
    ({'model': MODEL._replace(scale=-TWO)}, 'its scale is not positive'),
    (
      {'model': MODEL._replace(scale=TWO * 1e-45)},
      'its scale is below 1.1e-19',
    ),
    (
      {'model': MODEL._replace(scale=TWO * 1e38)},
      'its scale is beyond 1.8e+19',
    ),
    ({'extras': {}}, 'its extra part is missing'),
    ({'extras': None}, 'its extra part is missing'),
    (
      {'extras': {'part': ONE, 'more': ONE}},
      'its extra more is more than it was asked for',
    ),
    ({'trace': None}, 'its trace steps is missing'),
    (
      {'trace': TRACE._replace(loss=np.float32(np.nan))},
      'its trace loss is not finite',
    ),
    ({'memory': {}}, 'its memory part rounds is missing'),
    (
      {'memory': {'part': {**MEMORY['part'], 'deep': {'sums': TWO * np.inf}}}},
      'its memory part deep sums is not finite',
    ),
    (
      {'memory': {'part': {**MEMORY['part'], 'rounds': 1}}},
      'its memory part rounds is of type int, not an array',
    ),
  ],
)
def test_one_thing_is_bad(changes, reason):
  assert defect(**changes) == reason


@pytest.mark.parametrize('sent', [{}, (), 3, 'update', TWO])
def test_what_is_no_update(sent):
  arrival = engine.Arrival(3, sent, MEMORY)
  said = f'it sent {type(sent).__name__}, no update'
  assert admission.find_defect(arrival, LIKE) == said


def test_how_many_examples_a_client_has_is_known():
  """Who could say more would weigh more."""
  assert defect(limit=(None, 0.0, 10)) is None
  assert defect(limit=(None, 0.0, 9)) == (
    'it trained on 10 examples, and has 9'
  )


@pytest.mark.parametrize(
  ('limit', 'reason'),
  [
    (0.0, None),
    # The mean (1, 2, 3) moves by (1, 2, 3) from a broadcast half as large.
    (1.01, None),
    (0.99, 'its update has the norm 1.87, the broadcast 1.87'),
  ],
)
def test_how_far_an_update_may_go(limit, reason):
  half = MODEL._replace(loc=TWO / 2, point=ONE / 2)
  assert defect(limit=(half, limit)) == reason
  still = MODEL._replace(loc=TWO * 0, point=ONE * 0)
  assert (defect(limit=(still, limit)) is None) == (limit == 0)
