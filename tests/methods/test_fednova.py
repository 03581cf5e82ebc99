"""Tests of FedNova."""

import numpy as np
import pytest
import toys

from bfl_tf import federation, statistics, weights
from bfl_tf.federation.engine import Local
from bfl_tf.methods import fednova

STAGE = fednova.Stage
EMPTY = np.zeros(0, np.float32)
MOMENTUM = {'sgd.momentum': 0.9}


def length(steps, momentum):
  """Returns ||a||_1 as in section 4 of the paper."""
  rho = momentum
  return (steps - rho * (1 - rho**steps) / (1 - rho)) / (1 - rho)


@pytest.mark.parametrize('rho, nesterov', [(0.0, 0), (0.9, 0), (0.9, 1)])
def test_clients_send_the_papers_norm_times_the_learning_rate(rho, nesterov):
  settings = {'sgd.momentum': rho, 'sgd.nesterov': bool(nesterov)}
  pieces = toys.experiment(
    client_parts=('fednova',), local_epochs=3, **settings
  )
  sent = {}

  @toys.Engine
  def engine(experiment, state, clients):
    for client, update in Local()(experiment, state, clients):
      sent[client] = update
      yield client, update

  toys.rounds(pieces, 1, engine=engine)
  assert len({update.num_examples for update in sent.values()}) > 1
  for update in sent.values():
    steps = float(update.trace.steps)
    norm = length(steps, rho)
    expected = 0.1 * (steps + rho * norm if nesterov else norm)
    np.testing.assert_allclose(update.extras['fednova'], [expected], rtol=1e-5)


@pytest.mark.parametrize('variant', ['deterministic', 'flipout'])
def test_with_equal_numbers_of_steps_fednova_equals_fedavg(variant):
  equal = {'partition': 'iid', 'num_clients': 5, 'variant': variant}
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
  (statistic,), stage = STAGE.statistics, STAGE()

  def model(x):
    return weights.Weights(EMPTY, EMPTY, x, EMPTY)

  x = fedavg = np.zeros(2)
  for _ in range(2000):
    ends = [
      (descended(x, o, t, rate, momentum), rate * length(t, momentum), n)
      for o, t, n in zip(optima, steps, sizes)
    ]
    weighed = []
    for client, (end, way, size) in enumerate(ends):
      extras = {'fednova': np.array([way])}
      update = statistics.ClientUpdate(client, size, model(end), extras)
      weighed.append((update, size))
    results = {statistic: statistics.reduced(statistic, weighed, model(x))[0]}
    state = federation.State(0, model(x), {}, {})
    state, _ = stage(state, model(x), model(x), results, None)
    x = state.model.mean.astype(np.float64)
    fedavg = np.average(
      [descended(fedavg, o, t, rate, momentum) for o, t in zip(optima, steps)],
      axis=0,
      weights=sizes,
    )
  assert np.linalg.norm(fedavg - central) > 0.5
  np.testing.assert_allclose(x, central, atol=0.05)
