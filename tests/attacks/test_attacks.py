"""Tests of attacks and of the clients that they do not affect."""

import numpy as np
import pytest
import toys

from bfl_tf import federation
from bfl_tf.clients import attacks
from bfl_tf.federation import engine

KINDS = [*attacks.ATTACKS]


def arrivals(**changes):
  """Returns replies of round one by client, the experiment and the state."""
  experiment = toys.experiment(**changes)
  state = federation.initial_state(experiment).state
  came = engine.Local()(experiment, state, range(6))
  return dict(came), experiment, state


def settings(kind, fraction=0.4, **more):
  return {'attack': (kind,), f'{kind}.fraction': fraction, **more}


@pytest.mark.parametrize('kind', KINDS)
def test_only_malicious_clients_send_different_updates(kind, variant='flipout'):
  good, _, _ = arrivals(variant=variant)
  some, experiment, _ = arrivals(variant=variant, **settings(kind))
  malicious = attacks.malicious_clients(experiment.config.seed, 6, 0.4)
  assert len(malicious) == 2
  for client in range(6):
    same = toys.same(good[client].model, some[client].model)
    assert same == (client not in malicious)
    assert all(np.isfinite(v).all() for v in some[client].model)


def test_a_malicious_fraction_of_zero_changes_no_bits():
  """The result equals that without attacks, bit for bit."""
  without, _ = toys.execute(toys.experiment(), 1)
  for kind in KINDS:
    none, _ = toys.execute(toys.experiment(**settings(kind, fraction=0.0)), 1)
    assert toys.same(without.model, none.model)


def test_malicious_clients_depend_on_the_fraction_and_the_seed():
  few, more = (attacks.malicious_clients(3, 20, f) for f in (0.1, 0.4))
  assert (len(few), len(more)) == (2, 8)
  assert few < more
  assert len(attacks.malicious_clients(3, 20, 0.18)) == 4
  assert attacks.malicious_clients(4, 20, 0.4) != more


def test_a_label_flip_client_trains_on_flipped_labels():
  some, experiment, state = arrivals(**settings('label_flip'))
  (client, *_) = attacks.malicious_clients(experiment.config.seed, 6, 0.4)
  work = federation.client_task(
    experiment.plan,
    experiment.broadcast(state),
    client,
    experiment.partition[client],
  )
  worker = experiment.workers[0]
  flipped = worker.train(work, y=2 - worker.labels)
  assert toys.same(flipped.model, some[client].model)


def test_two_attacks_of_a_client_are_combined():
  """The labels are flipped first; then the update is scaled."""
  both = {
    **settings('label_flip'),
    **settings('scaled_update', **{'scaled_update.factor': 3.0}),
    'attack': ('label_flip', 'scaled_update'),
  }
  some, experiment, state = arrivals(**both)
  flipped, _, _ = arrivals(**settings('label_flip'))
  (client, *_) = attacks.malicious_clients(experiment.config.seed, 6, 0.4)
  before = state.model.mean
  np.testing.assert_allclose(
    some[client].model.mean - before,
    3 * (flipped[client].model.mean - before),
    rtol=1e-4,
    atol=1e-6,
  )
