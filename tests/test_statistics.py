"""Tests of sums in double-double arithmetic, which ignore the order."""

import fractions
import functools

import hypothesis
from hypothesis import strategies as st
import numpy as np

from bfl_tf import parts, statistics

law = hypothesis.settings(max_examples=30)
wide = st.floats(-1e6, 1e6).map(lambda x: x * abs(x) ** 3)


class Terms(parts.Server):
  def terms(self, update, weight, broadcast):
    return update.model


def collected(client_id, weight=1.0, **terms):
  update = statistics.ClientUpdate(client_id, 1, terms)
  return statistics.collected(Terms(), update, weight, None)


def single(client_id, vector, weight=1.0):
  return collected(
    client_id, weight, vector=np.array(vector), kept=parts.Keep(weight)
  )


def merge(shares):
  return functools.reduce(statistics.merge, shares)


def value(sums, name='vector'):
  return statistics.values(sums)[name]


@law
@hypothesis.given(st.lists(wide, min_size=1, max_size=12))
def test_sums_are_exact_to_1e_30(terms):
  sums = merge(single(k, [x]) for k, x in enumerate(terms))
  exact = sum(map(fractions.Fraction, terms))
  got = sum(fractions.Fraction(float(x)) for x in sums.vectors['vector'].flat)
  slack = 1e-30 * sum(map(abs, terms))
  assert abs(got - exact) <= slack
  rounded = fractions.Fraction(float(value(sums)[0]))
  assert abs(rounded - exact) <= 2.0**-53 * float(abs(exact)) + slack


def test_merged_weights_sums_and_tables_match_hand_computed_values():
  # A sum in a single float64 would lose the 1.
  sums = merge(single(k, [x]) for k, x in enumerate([1e20, 1.0, -1e20]))
  assert value(sums).tolist() == [1.0]
  sums = merge(
    [single(4, [1, 2], 0.5), single(1, [3, 4], 8), single(2, [0, 0])]
  )
  assert sums.max_weight == 8
  assert value(sums, 'weight') == 9.5 and value(sums, 'count') == 3
  assert value(sums).tolist() == [4, 6]
  # Values that are not summed have the order of the clients.
  assert value(sums, 'kept') == [8, 1.0, 0.5]


def test_vectors_missing_from_a_share_count_as_0():
  named = collected(1, own=np.ones(2), more=parts.Keep('b'))
  pair = merge([named, collected(3, own=np.ones(2))])
  kept = [v.copy() for v in pair.vectors.values()]
  sums = merge([single(0, [1]), pair, single(2, [4]), named])
  assert value(sums).tolist() == [5]
  assert value(sums, 'own').tolist() == [3, 3]
  assert sums.tables == {'kept': {0: 1.0, 2: 1.0}, 'more': {1: 'b'}}
  # The merged share is unchanged here too.
  assert all(map(np.array_equal, kept, pair.vectors.values()))


def test_sums_keep_the_shapes_of_vectors():
  # A transposed array has another memory order.
  turned = np.arange(6.0).reshape(2, 3).T
  for vector in (np.ones([2, 3, 4]), np.ones(0), turned):
    shares = [collected(k, vector=vector) for k in range(3)]
    np.testing.assert_array_equal(value(merge(shares)), 3 * vector)
