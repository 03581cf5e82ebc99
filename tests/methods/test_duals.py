"""Tests of FedDyn and FedLap on clients with quadratic losses."""

import numpy as np
import pytest
import tensorflow as tf
import toys

from bfl_tf import statistics, training

# Client k's mean loss is sum_i CURVATURE[k, i] (w_i - OPTIMUM[k, i])^2 / 2.
RNG = np.random.default_rng(0)
CURVATURE = RNG.uniform(0.5, 3, [6, 15])
OPTIMUM = RNG.normal(size=[6, 15])


@toys.Engine
def engine(experiment, state, clients):
  """Trains each client until its gradient, changed by its part, is zero."""
  (part,) = experiment.method.parts
  fresh = experiment.method.fresh_memory(state.model)
  for client in clients:
    size = len(experiment.partition[client])
    number = np.float32(1)
    step = training.Step(number, number, None, np.float32(size))
    kept = state.memories.get(client, fresh)[part.name]
    carry = part.begin(state.model, state.slots[part.name], kept)

    def gradient(mean, client=client, carry=carry, step=step):
      own = CURVATURE[client] * (mean - OPTIMUM[client])
      changed = part.gradient(np.float32(own), mean, carry, step)
      return np.asarray(changed)

    zero = np.zeros(15, np.float32)
    at_0, at_1 = gradient(zero), gradient(zero + 1)  # The gradient is linear.
    model = state.model.replace_mean(-at_0 / (at_1 - at_0))
    trace = toys.trace(experiment.method, state.round, client, size)
    result = training.Chain([part]).finish(model, (carry,), trace)
    sent = tf.nest.map_structure(np.asarray, result)
    update = statistics.ClientUpdate(
      client, size, sent.model, sent.extras, sent.trace, sent.memory
    )
    yield client, update


def played(num_rounds, **changes):
  """Returns client sizes, and the mean before and after each round."""
  experiment = toys.experiment(**changes)
  rounds = toys.rounds(experiment, num_rounds, engine=engine)
  sizes = np.array([len(part) for part in experiment.partition])
  return sizes, [each.state.model.mean for each in rounds]


def weighted_optimum(sizes, precision=0.0):
  total = (sizes[:, None] * CURVATURE).sum(0) + precision
  return (sizes[:, None] * CURVATURE * OPTIMUM).sum(0) / total


def test_feddyn_matches_hand_computed_rounds():
  alpha = 0.5
  settings = {'client_parts': ('feddyn',), 'feddyn.alpha': alpha}
  sizes, found = played(3, **settings)
  shares = (sizes / sizes.sum())[:, None]
  mean, linear, total = found[0], np.zeros([6, 15]), 0.0
  for expected in found[1:]:
    target = CURVATURE * OPTIMUM + linear + alpha * mean
    trained = target / (CURVATURE + alpha)
    linear = linear - alpha * (trained - mean)
    total = total + (shares * (trained - mean)).sum(0)
    mean = (shares * trained).sum(0) + total
    np.testing.assert_allclose(expected, mean, atol=1e-5)


def test_fedlap_matches_hand_computed_rounds():
  delta, rho = 2.0, 0.3
  settings = {'fedlap.delta': delta, 'fedlap.damping': rho}
  sizes, found = played(3, client_parts=('fedlap',), **settings)
  mean, each = found[0], sizes[:, None]
  duals = np.repeat(mean[None] / 6, 6, axis=0)
  for expected in found[1:]:
    target = each * CURVATURE * OPTIMUM - delta * (duals - mean)
    trained = target / (each * CURVATURE + delta)
    duals = duals + rho * (trained - mean)
    mean = duals.sum(0)
    np.testing.assert_allclose(expected, mean, atol=1e-5)


@pytest.mark.parametrize('clients_per_round', [0, 3])
def test_feddyn_converges_to_the_optimum_of_all_examples(clients_per_round):
  settings = {'feddyn.alpha': 1.0, 'clients_per_round': clients_per_round}
  # With unequal clients, the server only estimates the sum of all weights.
  settings['partition'] = 'iid'
  sizes, found = played(150, client_parts=('feddyn',), **settings)
  np.testing.assert_allclose(found[-1], weighted_optimum(sizes), atol=1e-3)


@pytest.mark.parametrize('clients_per_round', [0, 3])
def test_fedlap_converges_to_the_optimum_of_all_examples(clients_per_round):
  settings = {'fedlap.delta': 50.0, 'fedlap.damping': 1 / 6}
  settings['clients_per_round'] = clients_per_round
  sizes, found = played(250, client_parts=('fedlap',), **settings)
  optimum = weighted_optimum(sizes, precision=50.0)
  np.testing.assert_allclose(found[-1], optimum, atol=1e-3)
