"""Tests of SCAFFOLD."""

import numpy as np
import pytest
import toys

from bfl_tf import data, federation
from bfl_tf.config.config import Config


def drifting():
  """Returns data of two clients with different features, labels and optima."""
  rng = np.random.default_rng(0)
  x = np.concatenate([
    rng.normal([2, 0], 1, (60, 2)), rng.normal([-1, 1], 2, (60, 2))
  ])  # fmt: skip
  y = np.concatenate([np.arange(60) % 3 == 0, np.arange(60) % 4 != 0])
  x, y = x.astype(np.float32), y.astype(np.int32)
  return data.from_arrays('drifting', x, y, x, y)


def unequal(labels, *, num_clients, seed):
  """Partitions examples in order, with sizes 1 : 3 : 5 : ...."""
  del seed
  ends = len(labels) * np.arange(1, num_clients) ** 2 // num_clients**2
  return np.split(np.arange(len(labels)), ends)


# The config resolves the names of the functions above.
CONFIG = Config(
  dataset='methods.test_scaffold:drifting',
  partition='methods.test_scaffold:unequal',
  num_clients=2,
  num_workers=1,
  model='logistic',
  variant='deterministic',
  batch_size=100,
  local_epochs=10,
  client_optimizer='sgd',
  client_learning_rate=0.5,
  client_weight_decay=0.1,
  num_rounds=40,
)


def execute(**changes):
  """Returns the initial state and the states after each round."""
  config = CONFIG.replace(**changes)
  experiment = federation.Experiment.build(config)
  return [r.state for r in toys.rounds(experiment, config.num_rounds)]


@pytest.fixture(scope='module')
def scaffold():
  return execute(client_parts=('scaffold',))


def test_the_first_round_equals_fedavg(scaffold):
  fedavg = execute(num_rounds=1)
  assert toys.same(scaffold[1].model, fedavg[1].model)


def test_the_control_matches_a_hand_computed_value(scaffold):
  # For equal steps, the mean of (x - y_i) / R is (x - y) / R, y the average.
  before, after = scaffold[0], scaffold[1]
  rates = CONFIG.client_learning_rate * CONFIG.local_epochs
  expected = (before.model.mean - after.model.mean) / rates
  control = after.slots['scaffold']['control']
  np.testing.assert_allclose(control, expected, atol=1e-6)


def test_with_one_client_per_round_the_control_is_the_weighted_mean():
  # Updates are divided by the mean weight. With the client's own weight, the
  # control of a small client would be seven times that of a large one.
  some = {'num_clients': 4, 'clients_per_round': 1, 'num_rounds': 6}
  states = execute(client_parts=('scaffold',), **some)
  sizes = list(map(len, unequal(range(120), num_clients=4, seed=0)))
  sampled, own = [], {}
  for state in states[1:]:
    now = {k: m['scaffold'] for k, m in state.memories.items()}
    sampled += [
      sizes[k] for k in now if not np.array_equal(now[k], own.get(k, 0))
    ]
    own = now
    total = sum(sizes[k] * control for k, control in own.items())
    np.testing.assert_allclose(
      state.slots['scaffold']['control'],
      total / (4 * np.mean(sampled)),
      atol=1e-5,
    )
  assert len(set(sampled)) > 2


def test_scaffold_converges_to_the_optimum_of_all_examples(scaffold):
  everybody = {'num_clients': 1, 'batch_size': 120}
  central = execute(**everybody, num_rounds=60, local_epochs=20)[-1].model.mean
  some = {'num_clients': 4, 'clients_per_round': 2, 'num_rounds': 80}
  for fedavg, ours in (
    (execute(), scaffold),
    (execute(**some), execute(client_parts=('scaffold',), **some)),
  ):
    assert np.linalg.norm(fedavg[-1].model.mean - central) > 0.03
    assert np.linalg.norm(ours[-1].model.mean - central) < 1e-3


def test_correcting_weights_equals_correcting_gradients(scaffold):
  settings = {'scaffold.corrects': 'weights', 'num_rounds': 3}
  ours = execute(client_parts=('scaffold',), **settings)[-1]
  np.testing.assert_allclose(ours.model.mean, scaffold[3].model.mean, atol=1e-5)


def test_correcting_weights_with_momentum_is_closer_to_the_optimum(scaffold):
  settings = {'client_learning_rate': 0.1, 'num_rounds': 20}
  settings['sgd.momentum'] = 0.8
  corrected = {'client_parts': ('scaffold',), 'scaffold.corrects': 'weights'}
  fedavg, ours = (
    np.linalg.norm(states[-1].model.mean - scaffold[-1].model.mean)
    for states in (execute(**settings), execute(**settings, **corrected))
  )
  assert ours < 0.6 * fedavg
