"""Tests of sums in double-double arithmetic, which ignore the order."""

import fractions
import functools

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from bfl_tf import statistics

law = hypothesis.settings(max_examples=30)
wide = st.floats(-1e6, 1e6).map(lambda x: x * abs(x) ** 3)


def single(client_id, vector, weight=1.0):
  vector = np.array(vector, np.float64)
  return statistics.single(
    weight, {'vector': vector}, {'kept': {client_id: weight}}
  )


def merge(shares):
  return functools.reduce(statistics.merge, shares)


@law
@hypothesis.given(st.lists(wide, min_size=1, max_size=12))
def test_sums_are_exact_to_1e_30(terms):
  sums = merge(single(k, [x]) for k, x in enumerate(terms))
  exact = sum(map(fractions.Fraction, terms))
  got = sum(fractions.Fraction(float(x)) for x in sums.vectors['vector'].flat)
  slack = 1e-30 * sum(map(abs, terms))
  assert abs(got - exact) <= slack
  value = fractions.Fraction(float(sums.value('vector')[0]))
  assert abs(value - exact) <= 2.0**-53 * float(abs(exact)) + slack


def test_merged_weights_sums_and_tables_match_hand_computed_values():
  # A sum in a single float64 would lose the 1.
  sums = merge(single(k, [x]) for k, x in enumerate([1e20, 1.0, -1e20]))
  assert sums.value('vector').tolist() == [1.0]
  sums = merge(
    [single(4, [1, 2], 0.5), single(1, [3, 4], 8), single(2, [0, 0])]
  )
  assert sums.max_weight == 8
  assert sums.value('weight') == 9.5
  assert sums.value('vector').tolist() == [4, 6]
  assert sums.tables == {'kept': {4: 0.5, 1: 8, 2: 1.0}}


def test_merging_does_not_change_the_second_share():
  share = single(1, [1e-30])
  total = merge([single(0, [1.0]), share])
  statistics.merge(total, single(2, [5.0]))
  assert share.vectors['vector'].tolist() == [[1e-30]]


def test_vectors_missing_from_a_share_count_as_0():
  named = statistics.single(1.0, {'own': np.ones(2)}, {'more': {1: 'b'}})
  pair = merge([named, statistics.single(1.0, {'own': np.ones(2)})])
  kept = [v.copy() for v in pair.vectors.values()]
  sums = merge([single(0, [1]), pair, single(2, [4]), named])
  assert sums.value('vector').tolist() == [5]
  assert sums.value('own').tolist() == [3, 3]
  assert sums.tables == {'kept': {0: 1.0, 2: 1.0}, 'more': {1: 'b'}}
  # The merged share is unchanged here too.
  assert all(map(np.array_equal, kept, pair.vectors.values()))


def test_sums_keep_the_shapes_of_vectors():
  def share(*shape):
    return statistics.single(1.0, {'vector': np.ones(shape)})

  sums = merge([share(2, 3, 4)] * 3)
  assert sums.value('vector').shape == (2, 3, 4)
  assert np.all(sums.value('vector') == 3)
  assert merge([share(0)] * 2).value('vector').shape == (0,)
  # A transposed array has another memory order.
  turned = np.arange(6.0).reshape(2, 3).T
  shares = [statistics.single(1.0, {'vector': turned}) for _ in range(3)]
  assert np.array_equal(merge(shares).value('vector'), 3 * turned)


@pytest.mark.parametrize('size', [0, 8192, 8193, 20_000])
def test_chunks_cover_every_element_once(size):
  seen = np.zeros(size, int)
  for part in statistics.chunks(size):
    seen[part] += 1
    assert seen[part].nbytes <= 8 * 8192
  assert np.all(seen == 1)
