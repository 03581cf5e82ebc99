"""Tests of the low-rank product against the dense product."""

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest
from tensorflow_probability import distributions as tfd
import toys

from bfl_tf import statistics, weights
from bfl_tf.server import pooling
from bfl_tf.server.pooling import product

law = settings(max_examples=25, deadline=None)
NUM = 30


def model(rng, rank, size=NUM, spread=1.0):
  scale = np.exp(spread * rng.normal(size=size))
  loc, factor = rng.normal(size=size), rng.normal(size=(rank, size))
  return toys.model(loc, scale, [], [], factor)


def covariance(client):
  scale, factor = client.scale.astype(float), client.factor.astype(float)
  return np.diag(scale**2) + factor.T @ factor


def dense(clients):
  """Returns mean and covariance of the product, P x P."""
  precisions = [np.linalg.inv(covariance(client)) for client in clients]
  sigma = np.linalg.inv(sum(precisions))
  shift = sum(p @ c.loc.astype(float) for p, c in zip(precisions, clients))
  return sigma @ shift, sigma


def diagonal(clients):
  precisions = [1 / np.square(c.scale, dtype=float) for c in clients]
  shift = sum(p * c.loc.astype(float) for p, c in zip(precisions, clients))
  return shift, sum(precisions)


def updates(clients, sizes=None):
  sizes = sizes or [1] * len(clients)
  return [
    statistics.ClientUpdate(k, n, client)
    for k, (n, client) in enumerate(zip(sizes, clients))
  ]


def pooled(sent, name='product', order=None):
  weighed = [(sent[k], 1.0) for k in order or range(len(sent))]
  rule = pooling.rule_of(name)
  found = toys.pooled(rule, weighed, sent[0].model)
  return found.model, found.report


@law
@given(
  st.integers(0, 2**31), st.lists(st.integers(0, 5), min_size=1, max_size=5)
)
def test_the_low_rank_product_equals_the_dense_product(seed, ranks):
  rng = np.random.default_rng(seed)
  clients = [model(rng, rank) for rank in ranks]
  mean, sigma = dense(clients)
  whole = [client for client in clients if len(client.factor)]
  if not whole:
    return
  found = product.completed(whole, *diagonal(clients), np.float64)
  ours = np.diag(found.variance) + found.factor.T @ found.factor
  scale = np.sqrt(sigma.diagonal())
  np.testing.assert_allclose(
    ours / np.outer(scale, scale), sigma / np.outer(scale, scale), atol=1e-8
  )
  np.testing.assert_allclose(found.mean / scale, mean / scale, atol=1e-8)


def test_the_product_of_several_chunks_equals_that_of_blocks():
  # No factor correlates the blocks of weights, so each block is a product.
  rng = np.random.default_rng(1)
  size = 9_000
  clients = []
  for _ in range(3):
    whole = model(rng, 4, size)
    whole.factor[:2, 20:] = 0
    whole.factor[2:, :-20] = 0
    clients.append(whole)
  got, _ = pooled(updates(clients))
  for part, rows in (
    (slice(0, 20), slice(0, 2)),
    (slice(-20, None), slice(2, 4)),
  ):
    cut = [
      weights.Weights(
        c.loc[part], c.scale[part], c.point, c.buffers, c.factor[rows, part]
      )
      for c in clients
    ]
    mean, sigma = dense(cut)
    np.testing.assert_allclose(got.loc[part], mean, rtol=1e-4, atol=1e-6)
    factor = got.factor[:, part].astype(float)
    ours = np.diag(np.square(got.scale[part], dtype=float)) + factor.T @ factor
    np.testing.assert_allclose(ours, sigma, rtol=1e-4, atol=1e-6)


@law
@given(st.integers(0, 2**31), st.permutations(range(4)))
def test_the_order_of_clients_does_not_matter(seed, order):
  rng = np.random.default_rng(seed)
  sent = updates([model(rng, rank) for rank in (2, 0, 3, 4)], [3, 1, 5, 2])
  expected, info = pooled(sent)
  got, again = pooled(sent, order=order)
  assert toys.same(got, expected)
  assert info == again


@law
@given(st.integers(0, 2**31), st.integers(1, 6))
def test_pooling_one_client_returns_its_model_bit_for_bit(seed, rank):
  alone = model(np.random.default_rng(seed), rank)
  got, info = pooled(updates([alone]))
  assert toys.same(got, alone)
  assert 0 < info['factor_fraction'] < 1


def test_a_factor_much_larger_than_the_scale_is_pooled_accurately():
  rng = np.random.default_rng(4)
  clients = [
    client._replace(scale=np.float32(1e-3) * client.scale)
    for client in (model(rng, 3, spread=0.1) for _ in range(3))
  ]
  mean, sigma = dense(clients)
  found = product.completed(clients, *diagonal(clients), np.float64)
  ours = np.diag(found.variance) + found.factor.T @ found.factor
  np.testing.assert_allclose(ours, sigma, rtol=1e-6, atol=1e-9 * sigma.max())
  np.testing.assert_allclose(found.mean, mean, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize('ratio', [1e3, 1e5, 1e6, 1e8])
def test_equal_covariances_are_averaged_or_rejected_if_ill_conditioned(ratio):
  # The product of K clients is N(mean of the means, covariance / K).
  rng = np.random.default_rng(6)
  one = model(rng, 3, spread=0.1)
  one = one._replace(scale=one.scale / np.float32(ratio))
  clients = [one._replace(loc=one.loc + 2 * k * one.scale) for k in range(4)]
  if ratio >= 1e6:
    with pytest.raises(ValueError, match=f'e\\+0{np.log10(ratio):.0f}'):
      pooling.pool('product', map(weights.distribution, clients))
    return
  found = product.completed(clients, *diagonal(clients), np.float64)
  ours = np.diag(found.variance) + found.factor.T @ found.factor
  sigma = covariance(one) / 4
  np.testing.assert_allclose(ours, sigma, rtol=1e-3, atol=1e-3 * sigma.max())
  np.testing.assert_allclose(
    found.mean, np.mean([c.loc for c in clients], 0), atol=1e-3
  )


def test_pool_returns_a_low_rank_gaussian():
  rng = np.random.default_rng(5)
  clients = [model(rng, rank) for rank in (2, 3)]
  got = pooling.pool('product', [*map(weights.distribution, clients)])
  assert isinstance(got, tfd.MultivariateNormalDiagPlusLowRankCovariance)
  mean, sigma = dense(clients)
  np.testing.assert_allclose(got.mean(), mean, rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(got.covariance(), sigma, rtol=1e-3, atol=1e-5)


def test_the_product_of_full_covariances_has_full_rank():
  rng = np.random.default_rng(7)
  clients = [model(rng, NUM, spread=0.3) for _ in range(3)]
  mean, sigma = dense(clients)
  got, _ = pooled(updates(clients))
  assert got.factor.shape == (NUM, NUM)
  scale = np.sqrt(sigma.diagonal())
  np.testing.assert_allclose(
    covariance(got) / np.outer(scale, scale),
    sigma / np.outer(scale, scale),
    atol=1e-5,
  )
  np.testing.assert_allclose(got.loc / scale, mean / scale, atol=1e-5)
