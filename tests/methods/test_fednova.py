"""Tests of FedNova."""

import numpy as np
import pytest
import toys

from bfl_tf import parts, statistics, training
from bfl_tf.methods import fednova

MOMENTUM = {'sgd.momentum': 0.9}


def nova(*sgd):
  return fednova.FedNova(run=parts.RunFacts(optimizer=training.SGD(*sgd)))


def length(steps, momentum):
  """Returns ||a||_1 as in section 4 of the paper."""
  rho = momentum
  return (steps - rho * (1 - rho**steps) / (1 - rho)) / (1 - rho)


@pytest.mark.parametrize('rho, nesterov', [(0.0, 0), (0.9, 0), (0.9, 1)])
def test_the_length_is_the_papers_norm_times_the_learning_rate(rho, nesterov):
  part = nova(rho, bool(nesterov))
  for steps in (1, 7):
    norm = length(steps, rho)
    expected = 0.1 * (steps + rho * norm if nesterov else norm)
    assert part.length(np.full(steps, 0.1)) == pytest.approx(expected)


def test_the_length_counts_the_rate_of_each_step():
  # By hand: velocities 1 and 1.5, rates 0.2 and 0.1.
  part = nova(0.5)
  assert part.length(np.array([0.2, 0.1])) == pytest.approx(0.35)


def test_with_equal_numbers_of_steps_fednova_equals_fedavg():
  equal = {'partition': 'iid', 'num_clients': 5, 'variant': 'flipout'}
  equal |= {'local_epochs': 2, **MOMENTUM}
  fedavg = toys.experiment(**equal)
  fednova = toys.experiment(**equal, client_parts=('fednova',))
  ours, theirs = (toys.execute(p)[0].model for p in (fednova, fedavg))
  np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(ours.scale, theirs.scale, rtol=1e-5)


def descended(x, optimum, steps, rate, momentum):
  """Returns the result of gradient descent on |x - optimum|^2 / 2."""
  velocity = np.zeros_like(x)
  for _ in range(steps):
    velocity = momentum * velocity + x - optimum
    x = x - rate * velocity
  return x


@pytest.mark.parametrize('momentum', [0.0, 0.9])
def test_the_fixed_point_is_the_optimum_for_unequal_numbers_of_steps(momentum):
  optima = np.array([[0.0, 1.0], [2.0, -1.0], [5.0, 3.0]])
  sizes, steps, rate = [10, 20, 30], [1, 10, 3], 1e-3
  central = np.average(optima, axis=0, weights=sizes)
  part = nova(momentum)

  def model(x):
    return toys.model(point=x)

  def ends(x):
    return [descended(x, o, t, rate, momentum) for o, t in zip(optima, steps)]

  def nova_round(x):
    weighed = []
    for client, (end, size) in enumerate(zip(ends(x), sizes)):
      rates = np.full(steps[client], rate)
      update = statistics.ClientUpdate(client, size, model(end), rates=rates)
      weighed.append((update, size))
    found = toys.pooled(part, weighed, model(x)).model
    return found.mean.astype(np.float64)

  def fixed_point(of_round):
    # A round is an affine function of each weight.
    at_0, at_1 = of_round(np.zeros(2)), of_round(np.ones(2))
    return at_0 / (1 - (at_1 - at_0))

  fedavg = fixed_point(lambda x: np.average(ends(x), axis=0, weights=sizes))
  assert np.linalg.norm(fedavg - central) > 0.5
  np.testing.assert_allclose(fixed_point(nova_round), central, atol=0.05)
