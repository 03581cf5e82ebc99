"""Tests of `pool` on TFP distributions, with analytic solutions."""

import functools

import numpy as np
import pytest
from tensorflow_probability import distributions as tfd

from bfl_tf.server import pooling

weighted = ('nwa', 'ws', 'lp', 'llp', 'wc')


def normal(loc, scale):
  return tfd.MultivariateNormalDiag(np.float32(loc), np.float32(scale))


def moments(posterior):
  """Returns mean and variance in float64."""
  mean, deviation = posterior.mean().numpy(), posterior.stddev().numpy()
  return mean.astype(np.float64), np.square(deviation, dtype=np.float64)


def pool_moments(rule, loc, scale, weights=None, **kwargs):
  posteriors = map(normal, loc, scale)
  return moments(pooling.pool(rule, posteriors, weights, **kwargs))


# Around 1000, squares of means would cancel; squares of distances do not.
@pytest.mark.parametrize(
  'prior, around, spread', [(None, 1, 1e-5), (0.0, 1, 1e-5), (None, 1e3, 1e-4)]
)
def test_lp_measures_a_small_spread_of_means(prior, around, spread):
  rng = np.random.default_rng(0)
  loc = rng.normal(around, spread, (10, 50)).astype(np.float32)
  scale = np.full_like(loc, 1e-6)
  w = np.arange(1, 11) / 55
  centre = None if prior is None else normal(np.full(50, prior), np.ones(50))
  _, variance = pool_moments('lp', loc, scale, w, prior=centre)
  loc, scale = loc.astype(np.float64), scale.astype(np.float64)
  expected = w @ (scale**2 + (loc - w @ loc) ** 2)
  np.testing.assert_allclose(variance, expected, rtol=1e-4)


# `dwc` divides the whole prior out. In a product, each of three clients has the
# prior^(1/3). In an average by size, each client stands for all examples.
@pytest.mark.parametrize(
  'rule, weights, shares, kl_examples',
  [
    ('dwc', None, 1, 'own'),
    ('conflation', None, 3, 'own'),
    ('wc', 'equal', 3, 'own'),
    ('product', None, 3, 'own'),
    ('nwa', 'size', 1, 'all'),
    ('llp', 'size', 1, 'all'),
  ],
)
@pytest.mark.parametrize('prior_scale', [10.0, 0.1])
@pytest.mark.parametrize('design', ['same', 'separate', 'correlated'])
def test_conjugate_clients_give_the_centralized_posterior(
  rule, weights, shares, kl_examples, prior_scale, design
):
  # y = x theta + noise. `same`: all examples have equal information per weight.
  # `separate`: clients differ, but posteriors factorise.
  rng = np.random.default_rng(0)
  prior_mean, truth, noise = rng.normal(size=6), rng.normal(2, 1, 6), 0.7
  sizes, facts = np.array([6, 42, 504]), []
  for size in sizes:
    x = np.tile(np.sqrt(6) * np.eye(6), (size // 6, 1))
    if design == 'separate':
      x *= rng.uniform(0.2, 2, 6)
    if design == 'correlated':
      x = rng.normal(size=(size, 6)) @ (1 + np.eye(6))
    y = x @ (truth - prior_mean) + noise * rng.normal(size=size)
    facts.append((x.T @ x / noise**2, x.T @ y / noise**2))

  def posterior(gram, shift, prior_scale):
    """Returns mean and scales of the best factorised Gaussian."""
    precision = np.eye(6) / prior_scale**2 + gram
    mean = prior_mean + np.linalg.solve(precision, shift)
    return mean, precision.diagonal() ** -0.5

  times = sizes.sum() / sizes if kl_examples == 'all' else np.ones(3)
  clients = [
    posterior(n * gram, n * shift, prior_scale * shares**0.5)
    for n, (gram, shift) in zip(times, facts)
  ]
  mean, variance = pool_moments(
    rule,
    *zip(*clients),
    {'equal': np.ones(3), 'size': sizes}.get(weights),
    prior=normal(prior_mean, np.full(6, prior_scale)),
  )
  expected, scale = posterior(*map(sum, zip(*facts)), prior_scale)
  # An average is exact only if clients have equal information per example.
  same = design == 'same' or rule != 'nwa'
  close = functools.partial(np.allclose, rtol=1e-5, atol=0)
  assert close(np.sqrt(variance), scale) == same
  assert close(mean, expected) == (same and design != 'correlated')


def test_deterministic_models_are_averaged():
  points = [tfd.VectorDeterministic(p) for p in ([1.0, 2.0], [3.0, 8.0])]
  for name in pooling.RULES:
    mean = pooling.pool(name, points, prior=points[0])
    assert isinstance(mean, tfd.VectorDeterministic)
    assert mean.mean().numpy().tolist() == [2, 5]
    if name in weighted:
      mean = pooling.pool(pooling.rule_of(name), iter(points), iter([3, 1]))
      assert mean.mean().numpy().tolist() == [1.5, 3.5]


def test_invalid_arguments_are_rejected():
  for named, name, count, w in (
    ('Conflation', 'conflation', 2, [1, 1]),
    ('prior', 'dwc', 2, None),
    ('shorter', 'nwa', 2, [1]),
    ('--pooling=wsx', 'wsx', 2, None),
    *(('weights', 'nwa', 2, [1, bad]) for bad in (0, -1, np.nan, np.inf)),
  ):
    with pytest.raises(ValueError, match=named):
      pooling.pool(name, [normal([0], [1])] * count, w)
  sizes = [normal(np.zeros(n), np.ones(n)) for n in (3, 1)]
  for first, other in (sizes, sizes[::-1]):
    with pytest.raises(ValueError, match='size'):
      pooling.pool('dwc', [first], prior=other)
