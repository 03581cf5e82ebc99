"""Tests that rounds of exact clients give the exact posterior."""

import numpy as np
import pytest
from scipy import linalg
import tensorflow as tf
import toys

from bfl_tf import data, parts, statistics, training, weights
from bfl_tf.federation import client as client_lib

CLIENTS, NOISE, PRIOR = 3, 0.7, 2.0
# Examples of a client. Its columns are orthogonal, also to the bias, so that
# the posterior is a product of Gaussians.
SIGNS = linalg.hadamard(8)[:, 1:4]
# In a product, each client has the power 1 / CLIENTS of the prior.
METHODS = [
  {'pooling': 'product', 'flipout.prior_scale': PRIOR * CLIENTS**0.5},
  {'pooling': 'dwc', 'flipout.update_prior': True},
  {'client_parts': ('pvi',), 'flipout.prior_scale': PRIOR, 'pvi.damping': 1.0},
]  # fmt: skip


def lines():
  """Returns clients whose features have different scales."""
  rng = np.random.default_rng(0)
  x = np.concatenate(
    [SIGNS * rng.uniform(0.3, 3, 3) for _ in range(CLIENTS)]
  ).astype(np.float32)
  y = 5 + x @ [1.0, -2.0, 0.5] + NOISE * rng.normal(size=len(x))
  return data.from_arrays('lines', x, y, x[:4], y[:4], is_numeric=True)


def blocks(labels):
  return np.split(np.arange(len(labels)), CLIENTS)


def regression(worker, indices):
  """Returns the design matrix and the labels in units of the noise."""
  x, y = (each.numpy().astype(np.float64) for each in worker.examples(indices))
  center, unit = worker.likelihood.label_moments
  return unit / NOISE * np.c_[x, np.ones(len(x))], (y - center) / NOISE


def exact_client(plan, worker, broadcast, client, indices, memory=None, *_):
  """Replaces the training of a client by the exact posterior."""
  start = broadcast.model
  memory = memory or plan.fresh_memory(start)
  chain, size = training.Chain(plan.locals), len(indices)
  ctx = parts.Context(start, start, broadcast.shared)
  _, carry = chain.begin(ctx, memory)
  prior = np.array([[0.0], [plan.objective.prior_scale**-2]])
  if plan.objective.update_prior:
    prior = weights.natural(start).numpy()
  if chain.provider:
    prior = chain.prior(carry).eta.numpy()
  design, y = regression(worker, indices)
  exact = prior + np.stack([design.T @ y, np.square(design).sum(0)])
  model = weights.of_natural(exact, start)
  trace = toys.trace(plan, broadcast.round, client, size)
  result = chain.end(model, carry, trace)
  result = tf.nest.map_structure(np.asarray, result)
  return statistics.ClientUpdate(
    client, size, result.model, result.extras, result.trace,
    result.memory,
  )  # fmt: skip


@pytest.mark.parametrize('method', METHODS)
def test_the_pooled_posterior_is_bayesian_linear_regression(
  method, monkeypatch
):
  monkeypatch.setattr(client_lib, 'train_client', exact_client)
  experiment = toys.experiment(
    dataset='test_linear_regression:lines',
    partition='test_linear_regression:blocks',
    num_clients=CLIENTS, variant='flipout', likelihood='gaussian',
    **{'gaussian.noise': 'known', 'gaussian.noise_scale': NOISE}, **method,
  )  # fmt: skip
  # A second round of PVI uses the factors of the first one.
  rounds = 2 if 'client_parts' in method else 1
  first, *_, last = toys.rounds(experiment, rounds)
  shift, precision = np.zeros(4), np.full(4, PRIOR**-2)
  if experiment.plan.objective.update_prior:
    shift, precision = weights.natural(first.state.model).numpy()
  everything = np.arange(len(lines().train.y), dtype=np.int32)
  design, y = regression(experiment.workers[0], everything)
  covariance = np.linalg.inv(np.diag(precision) + design.T @ design)
  mean, scale = (
    covariance @ (shift + design.T @ y),
    covariance.diagonal() ** 0.5,
  )
  np.testing.assert_allclose(last.state.model.scale, scale, rtol=1e-5)
  np.testing.assert_allclose(last.state.model.loc, mean, rtol=0, atol=1e-5)
