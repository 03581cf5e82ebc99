"""Natural parameters: what joins and leaves, against the dense product."""

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest
import test_product

from bfl_tf.online import natural

law = settings(max_examples=25, deadline=None)


def joined(clients):
  first, *others = map(natural.of_model, clients)
  for other in others:
    first = natural.add(first, other)
  return first


def check(found, clients):
  got = natural.moments(found)
  mean, sigma = test_product.dense(clients)
  scale = np.sqrt(sigma.diagonal())
  ours = np.diag(got.variance) + got.factor.T @ got.factor
  np.testing.assert_allclose(got.mean / scale, mean / scale, atol=1e-8)
  np.testing.assert_allclose(
    ours / np.outer(scale, scale), sigma / np.outer(scale, scale), atol=1e-8
  )


@law
@given(
  st.integers(0, 2**31), st.lists(st.integers(0, 5), min_size=2, max_size=5)
)
def test_sums_are_the_product_and_who_leaves_was_never_there(seed, ranks):
  rng = np.random.default_rng(seed)
  clients = [test_product.model(rng, rank) for rank in ranks]
  whole = joined(clients)
  check(whole, clients)
  left = natural.subtract(whole, natural.of_model(clients[0]))
  check(left, clients[1:])
  # No more rows than there is rank: changes do not add up.
  assert len(left.rows) <= sum(ranks[1:])


@law
@given(st.integers(0, 2**31), st.sampled_from([1e-3, 1e-5, 1e-6]))
def test_who_is_far_more_certain_takes_nothing_of_the_others_along(seed, ratio):
  rng = np.random.default_rng(seed)
  clients = [test_product.model(rng, 3, spread=0.3) for _ in range(4)]
  small = (np.float32(ratio) * v for v in (clients[0].scale, clients[0].factor))
  clients[0] = clients[0]._replace(**dict(zip(('scale', 'factor'), small)))
  for order in (clients, clients[::-1]):
    whole = joined(order)
    check(natural.subtract(whole, natural.of_model(clients[0])), clients[1:])


def test_who_never_came_cannot_leave():
  rng = np.random.default_rng(0)
  clients = [test_product.model(rng, 2) for _ in range(3)]
  whole = joined(clients)
  before = [value.copy() for value in whole]
  precise = clients[0]._replace(scale=clients[0].scale / 100)
  with pytest.raises(ValueError, match='no positive definite diagonal'):
    natural.subtract(whole, natural.of_model(precise))
  # Its diagonal fits, its factor does not.
  turned = clients[0]._replace(factor=clients[0].factor[:, ::-1])
  with pytest.raises(ValueError, match='no positive definite precision'):
    natural.subtract(whole, natural.of_model(turned))
  other = clients[0]._replace(factor=clients[0].factor[:0])
  tight = joined(
    [clients[0]._replace(factor=100 * clients[0].factor), clients[1]]
  )
  with pytest.raises(ValueError, match='no positive definite precision'):
    natural.subtract(tight, natural.of_model(other))
  assert all(np.array_equal(a, b) for a, b in zip(before, whole))
