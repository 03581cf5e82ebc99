"""Tests of the validation of client updates."""

import numpy as np
import pytest
import tensorflow as tf

from bfl_tf import parts, statistics, training, weights
from bfl_tf.federation import admission, client

TWO, ONE = np.float32([1, 2]), np.float32([3])
MODEL = weights.Weights(TWO, TWO, ONE, ONE, np.ones([2, 2], np.float32))
TRACE = training.Trace(np.int32(4), np.float32(0.4), np.float32(2.0))
MEMORY = {'part': {'rounds': np.int32(1), 'deep': {'sums': TWO}}}
UPDATE = statistics.ClientUpdate(3, 10, MODEL, {'part': ONE}, TRACE)
WORK = client.Work(10, np.full(4, 0.1))
LIKE = training.Result(
  *tf.nest.map_structure(
    lambda value: tf.TensorSpec(np.shape(value), value.dtype),
    (MODEL, {'part': ONE}, MEMORY, TRACE),
  )
)


class Named(parts.Local):
  name = 'part'


class Booked(Named, parts.Server):
  exact = True

  def memory(self, model):
    return np.zeros(1)


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
  variances = np.array([True])
  admit = admission.Admission(LIKE, reference, limit, [Named()], variances)
  return admit.admit(3, update, work)[1]


def sent_by(size, limit=2.0, part=Named, history=None, **options):
  """Returns the result of an update whose change has a norm."""
  far = MODEL._replace(point=ONE + np.float32(size))
  update = UPDATE._replace(memory=MEMORY, model=far)
  admit = admission.Admission(
    LIKE, MODEL, limit, [part()], history=history, **options
  )
  return *admit.admit(3, update, WORK), admit.slots()


def test_a_valid_update_has_no_defect():
  assert defect() is None
  assert defect(work=WORK) is None


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
    (model(factor=np.ones([2, 3], np.float32)), 'factor has shape'),
    (model(factor=np.ones([3, 2], np.float32)), 'factor has shape'),
    (model(factor=np.ones([0, 2], np.float32)), 'factor has shape'),
    (model(buffers=-ONE), 'variances are negative'),
    (model(factor=np.full([2, 2], np.nan, np.float32)), 'factor is not finite'),
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


UNIT = np.linalg.norm([1, 2, 3])


def test_in_the_first_round_the_bound_is_relative_to_the_broadcast():
  update, defect, is_clipped, _ = sent_by(1.9 * UNIT)
  assert not defect and not is_clipped
  assert update.model.point == ONE + np.float32(1.9 * UNIT)
  update, defect, is_clipped, _ = sent_by(10 * UNIT)
  assert not defect and is_clipped
  assert update.model.point[0] == pytest.approx(3 + 2 * UNIT)


def test_a_broadcast_of_zeros_accepts_updates():
  zero = weights.Weights(*(vector * 0 for vector in MODEL))
  near = weights.Weights(*(vector / 100 for vector in MODEL))
  update = UPDATE._replace(memory=MEMORY, model=near, extras={'part': ONE / 50})
  admit = admission.Admission(LIKE, zero, 2.0, [Named()])
  assert admit.admit(3, update, WORK)[1:] == (None, False)


def test_later_the_bound_is_relative_to_the_median_of_earlier_rounds():
  # One round of three is that of a malicious client.
  history = admission.fresh_history()
  history[-3:] = [[0.5, 1, 1], [9.0, 1, 1], [0.4, 1, 1]]
  assert not sent_by(0.99, history=history)[2]
  update, defect, is_clipped, slots = sent_by(100.0, history=history)
  assert not defect and is_clipped
  assert update.model.point[0] == pytest.approx(3 + 2 * 0.5)
  # The accepted size enters the medians, not the size that was sent.
  new = slots[admission.SLOT]
  assert new.shape == history.shape
  np.testing.assert_allclose(new[-4:, 0], [0.5, 9.0, 0.4, 1.0], rtol=1e-6)


def test_the_median_of_two_clients_is_the_smaller():
  admit = admission.Admission(
    LIKE, MODEL, 0.0, [Named()], history=admission.fresh_history()
  )
  for size in (5, 1):
    model = MODEL._replace(point=ONE + np.float32(size))
    admit.admit(3, UPDATE._replace(memory=MEMORY, model=model), WORK)
  assert admit.slots()[admission.SLOT][-1, 0] == pytest.approx(1)


def test_an_update_that_client_and_server_sum_is_rejected_not_scaled():
  _, defect, is_clipped, _ = sent_by(10 * UNIT, part=Booked)
  assert 'mean' in defect and not is_clipped


@pytest.mark.parametrize('factor', [1e-3, 1e3])
def test_standard_deviations_are_scaled_to_their_bound(factor):
  scaled = MODEL._replace(
    scale=TWO * np.float32(factor), factor=MODEL.factor * np.float32(factor)
  )
  admit = admission.Admission(LIKE, MODEL, 4.0, [Named()], keeps_scale=True)
  update, defect, is_clipped = admit.admit(
    3, UPDATE._replace(memory=MEMORY, model=scaled), WORK
  )
  assert not defect and is_clipped
  ratio = np.sqrt(update.model.variance() / MODEL.variance())
  np.testing.assert_allclose(ratio, 4.0 ** np.sign(factor - 1), rtol=1e-5)
  np.testing.assert_array_equal(update.model.loc, MODEL.loc)


def test_without_a_maximum_nothing_is_scaled():
  _, defect, is_clipped, _ = sent_by(1e9, limit=0.0)
  assert not defect and not is_clipped
