"""Tests of FedDyn and FedLap on clients with quadratic losses."""

import conjugate
from conjugate import CURVATURE, OPTIMUM
import numpy as np


def test_feddyn_matches_hand_computed_rounds():
  alpha = 0.5
  settings = {'client_parts': ('feddyn',), 'feddyn.alpha': alpha}
  sizes, found = conjugate.played(3, **settings)
  shares = (sizes / sizes.sum())[:, None]
  mean, linear, total = found[0].model.mean, np.zeros([6, 15]), 0.0
  for expected in found[1:]:
    target = CURVATURE * OPTIMUM + linear + alpha * mean
    trained = target / (CURVATURE + alpha)
    linear = linear - alpha * (trained - mean)
    total = total + (shares * (trained - mean)).sum(0)
    mean = (shares * trained).sum(0) + total
    np.testing.assert_allclose(expected.model.mean, mean, atol=1e-5)


def test_fedlap_matches_hand_computed_rounds():
  delta, rho = 2.0, 0.3
  settings = {'fedlap.delta': delta, 'fedlap.damping': rho}
  sizes, found = conjugate.played(3, client_parts=('fedlap',), **settings)
  mean, each = found[0].model.mean, sizes[:, None]
  duals = np.repeat(mean[None] / 6, 6, axis=0)
  for expected in found[1:]:
    target = each * CURVATURE * OPTIMUM - delta * (duals - mean)
    trained = target / (each * CURVATURE + delta)
    duals = duals + rho * (trained - mean)
    mean = duals.sum(0)
    np.testing.assert_allclose(expected.model.mean, mean, atol=1e-5)


def test_feddyn_converges_to_the_optimum_of_all_examples():
  settings = {'feddyn.alpha': 1.0, 'clients_per_round': 3}
  # With unequal clients, the server only estimates the sum of all weights.
  settings['partition'] = 'iid'
  sizes, found = conjugate.played(60, client_parts=('feddyn',), **settings)
  np.testing.assert_allclose(
    found[-1].model.mean, conjugate.weighted_optimum(sizes), atol=1e-3
  )


def test_fedlap_converges_to_the_optimum_of_all_examples():
  settings = {'fedlap.delta': 50.0, 'fedlap.damping': 0.4}
  settings['clients_per_round'] = 3
  sizes, found = conjugate.played(120, client_parts=('fedlap',), **settings)
  optimum = conjugate.weighted_optimum(sizes, precision=50.0)
  np.testing.assert_allclose(found[-1].model.mean, optimum, atol=1e-3)
