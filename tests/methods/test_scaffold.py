"""Tests of SCAFFOLD on clients with quadratic losses."""

import conjugate
import numpy as np
import pytest
import toys

STEPS = 10
SETTINGS = {'batch_size': 150, 'local_epochs': STEPS}


def played(num_rounds, part='scaffold', **changes):
  return conjugate.played(
    num_rounds,
    conjugate.descending,
    client_parts=(part,),
    **SETTINGS,
    **changes,
  )


def fedavg(num_rounds, **changes):
  return played(num_rounds, 'toys:Idle', **changes)[1]


def distance(sizes, states):
  optimum = conjugate.weighted_optimum(sizes)
  return np.linalg.norm(states[-1].model.mean - optimum)


@pytest.fixture(scope='module')
def scaffold():
  return played(40)


def test_the_first_round_equals_fedavg(scaffold):
  assert toys.same(scaffold[1][1].model, fedavg(1)[1].model)


def test_the_control_matches_a_hand_computed_value(scaffold):
  # For equal steps, the mean of (x - y_i) / R is (x - y) / R, y the average.
  before, after, *_ = scaffold[1]
  expected = (before.model.mean - after.model.mean) / (0.1 * STEPS)
  control = after.slots['scaffold']['control']
  np.testing.assert_allclose(control, expected, atol=1e-6)


def test_with_one_client_per_round_the_control_is_the_weighted_mean():
  # Updates are divided by the mean weight. With the client's own weight, the
  # control of a small client would be larger than that of a large one.
  sizes, states = played(6, clients_per_round=1)
  sampled, own = [], {}
  for state in states[1:]:
    now = {k: m['scaffold'] for k, m in state.memories.items()}
    sampled += [
      sizes[k] for k in now if not np.array_equal(now[k], own.get(k, 0))
    ]
    own = now
    total = sum(sizes[k] * control for k, control in own.items())
    control = state.slots['scaffold']['control']
    expected = total / (6 * np.mean(sampled))
    np.testing.assert_allclose(control, expected, atol=1e-5)
  assert len(set(sampled)) > 2


@pytest.mark.parametrize('clients_per_round', [0, 3])
def test_scaffold_converges_to_the_optimum_of_all_examples(clients_per_round):
  some = {'clients_per_round': clients_per_round}
  sizes, states = played(40, **some)
  assert distance(sizes, fedavg(40, **some)) > 0.03
  assert distance(sizes, states) < 1e-3


def test_correcting_weights_equals_correcting_gradients(scaffold):
  _, ours = played(3, **{'scaffold.corrects': 'weights'})
  np.testing.assert_allclose(
    ours[-1].model.mean, scaffold[1][3].model.mean, atol=1e-5
  )


def test_correcting_weights_with_momentum_is_closer_to_the_optimum():
  slow = {'client_learning_rate': 0.02, 'sgd.momentum': 0.8}
  sizes, ours = played(30, **slow, **{'scaffold.corrects': 'weights'})
  assert distance(sizes, ours) < 0.6 * distance(sizes, fedavg(30, **slow))
