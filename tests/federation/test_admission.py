"""Tests of the validation of client updates."""

import numpy as np
import pytest
import tensorflow as tf

from bfl_tf import statistics, training, weights
from bfl_tf.federation import admission, client

TWO, ONE = np.float32([1, 2]), np.float32([3])
MODEL = weights.Weights(TWO, TWO, ONE, ONE, np.ones([2, 2], np.float32))
TRACE = training.Trace(np.int32(4), np.float32(0.4), np.float32(2.0))
MEMORY = {'part': {'rounds': np.int32(1), 'deep': {'sums': TWO}}}
UPDATE = statistics.ClientUpdate(3, 10, MODEL, {'part': ONE}, TRACE)
WORK = client.Work(10, 4, 0.4)
LIKE = training.Result(
  *tf.nest.map_structure(
    lambda value: tf.TensorSpec(np.shape(value), value.dtype),
    (MODEL, {'part': ONE}, MEMORY, TRACE),
  )
)
# The client chooses the rank.
LIKE = LIKE._replace(
  model=LIKE.model._replace(factor=tf.TensorSpec([None, 2], tf.float32))
)


class Named(training.Part):
  name = 'part'


class Unprintable(Exception):
  def __str__(self):
    raise RuntimeError


def defect(
  memory=MEMORY,
  failure=None,
  update=UPDATE,
  reference=MODEL,
  limit=0.0,
  work=None,
  **sent,
):
  if update is UPDATE:
    update = failure or update._replace(memory=memory, **sent)
  admit = admission.Admission(LIKE, reference, limit, [Named()])
  return admit.defect(3, update, work)


def test_a_valid_update_has_no_defect():
  assert defect() is None
  assert defect(work=WORK) is None
  factor = np.ones([7, 2], np.float32)
  assert defect(model=MODEL._replace(factor=factor)) is None
  assert defect(model=MODEL._replace(factor=factor[:0])) is None


@pytest.mark.parametrize(
  ('value', 'reason'),
  [
    (None, 'type NoneType'),
    (np.array([None]), 'object'),
    (np.float64([3]), 'float64'),
    (np.float32([[3]]), 'shape (1, 1)'),
    (np.float32([np.nan]), 'finite'),
    # The square of this value is not finite.
    (np.float32([-1e20]), 'beyond'),
  ],
)
def test_an_invalid_vector_is_named_in_the_reason(value, reason):
  for name, found in (
    ('its point ', defect(model=MODEL._replace(point=value))),
    ('its extra part ', defect(extras={'part': value})),
    ('its memory part rounds ', defect({'part': {'rounds': value}})),
  ):
    assert found.startswith(name)
    assert reason in found or 'memory' in name


def model(**vectors):
  return {'model': MODEL._replace(**vectors)}


@pytest.mark.parametrize(
  ('changes', 'reason'),
  [
    ({'failure': OSError('no power\n')}, 'OSError: no power'),
    ({'failure': Unprintable()}, 'cannot be read'),
    ({'update': TWO}, 'cannot be read'),
    ({'num_examples': 0}, 'on 0 examples'),
    ({'num_examples': 2.5}, 'on 2.5 examples'),
    ({'num_examples': 2**31}, f'on {2**31} examples'),
    # A false number of examples would change the client's weight.
    ({'work': WORK._replace(num_examples=9)}, '10 examples, and has 9'),
    ({'client_id': 4}, 'itself client 4'),
    ({'model': None}, 'loc is missing'),
    (model(scale=TWO * 0), 'scale is too small'),
    (model(scale=TWO * 1e38), 'scale is beyond'),
    ({'limit': 1e3, **model(scale=TWO * 1e4)}, '--max_update_norm'),
    (model(factor=np.ones([2, 3], np.float32)), 'factor has shape'),
    (model(factor=np.full([1, 2], np.nan, np.float32)), 'factor is not finite'),
    ({'extras': None}, 'extra part is missing'),
    ({'extras': {'part': ONE, 'more': ONE}}, 'extra more was not'),
    ({'trace': TRACE._asdict()}, 'trace is a dict'),
    ({'trace': TRACE._replace(loss=np.float32(np.nan))}, 'trace loss is not'),
    ({'memory': {}}, 'memory part rounds is missing'),
    (
      {'memory': {'part': {**MEMORY['part'], 'deep': {'sums': TWO * np.inf}}}},
      'memory part deep sums is not finite',
    ),
  ],
)
def test_an_invalid_field_is_named_in_the_reason(changes, reason):
  found = defect(**changes)
  assert reason in found and '\n' not in found


def test_the_reason_is_the_last_line_of_an_error_in_traced_code():
  failure = TypeError('in user code:\n\n  own.py\n\n  TypeError: no power\n')
  assert defect(failure=failure) == 'it raised TypeError: no power'


@pytest.mark.parametrize(
  ('factor', 'limit', 'is_valid'),
  [
    (0.5, 0.0, True),
    # The norm of the update equals that of a broadcast of half its size.
    (0.5, 1.01, True),
    (0.5, 0.99, False),
    # The broadcast is zero.
    (0.0, 1000.0, True),
    (0.0, 1.01, False),
  ],
)
def test_an_update_beyond_the_maximum_norm_is_rejected(factor, limit, is_valid):
  reference = weights.Weights(*(vector * factor for vector in MODEL))
  found = defect(reference=reference, limit=limit, extras={'part': ONE * 0})
  assert found is None if is_valid else '--max_update_norm' in found
