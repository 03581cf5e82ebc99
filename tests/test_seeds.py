"""Tests of random seeds, which depend on the name of a draw."""

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest
import tensorflow as tf

from bfl_tf import seeds

names = st.tuples(
  st.integers(0, 2**32 - 1),
  st.sampled_from(['local_training', 'client_sampling', 'partition']),
  st.lists(st.integers(0, 2**31), max_size=3),
)


def test_the_seeds_are_pinned():
  # The seeds must be the same in every process and for resumed runs.
  pinned = [1414981717, 862368811]
  assert seeds.named(0, 'local_training', 3, 1).tolist() == pinned
  arrays = seeds.named(np.int64(0), 'local_training', np.int32(3), 1)
  assert arrays.tolist() == pinned


@hypothesis.given(names, names)
def test_seeds_are_equal_exactly_if_their_names_are_equal(first, second):
  (run_a, purpose_a, a), (run_b, purpose_b, b) = first, second
  left = seeds.named(run_a, purpose_a, *a)
  right = seeds.named(run_b, purpose_b, *b)
  assert np.array_equal(left, right) == (first == second)
  # A round, and client 0 of this round.
  assert not np.array_equal(left, seeds.named(run_a, purpose_a, *a, 0))


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
