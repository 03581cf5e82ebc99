"""Tests of random seeds, which depend on the name of a draw."""

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest
import tensorflow as tf

from bfl_tf import seeds

PINNED = [1414981717, 862368811]
names = st.tuples(
  st.integers(0, 2**32 - 1),
  st.sampled_from(['local_training', 'client_sampling', 'partition']),
  st.lists(st.integers(0, 2**31), max_size=3),
)


def test_the_seeds_are_pinned():
  # The seeds must be the same in every process and for resumed runs.
  assert seeds.named(0, 'local_training', 3, 1).tolist() == PINNED


@hypothesis.given(names, names)
def test_seeds_are_equal_exactly_if_their_names_are_equal(first, second):
  (run_a, purpose_a, a), (run_b, purpose_b, b) = first, second
  same = first == second
  left = seeds.named(run_a, purpose_a, *a)
  right = seeds.named(run_b, purpose_b, *b)
  assert np.array_equal(left, seeds.named(run_a, purpose_a, *a))
  assert np.array_equal(left, right) == same


def test_a_trailing_zero_is_part_of_the_name():
  # These are round 5, and client 0 of round 5.
  assert not np.array_equal(
    seeds.named(0, 'sampling', 5), seeds.named(0, 'sampling', 5, 0)
  )
  assert np.array_equal(
    seeds.named(np.int64(3), 'a', np.int32(4)), seeds.named(3, 'a', 4)
  )


@pytest.mark.parametrize('jit_compile', [False, True])
def test_draws_in_a_graph_are_those_of_tensorflow(jit_compile):
  def ours(seed):
    shape = [5, 3]
    drawn = seeds.bits(shape, seed), seeds.uniform(shape, seed)
    return *drawn, seeds.split(seed)

  compiled = tf.function(ours, jit_compile=jit_compile)
  for seed in ([0, 0], [3, -4], [-(2**31), 2**31 - 1]):
    bits, uniform, split = compiled(tf.constant(seed))
    expected = tf.random.stateless_uniform(
      [5, 3], seed, None, None, tf.int32, alg='philox'
    )
    assert np.array_equal(bits, expected)
    expected = tf.random.stateless_uniform([5, 3], seed, alg='philox')
    assert np.array_equal(uniform, expected)
    expected = tf.random.experimental.stateless_split(seed, 1, alg='philox')
    assert np.array_equal(split, expected[0])
