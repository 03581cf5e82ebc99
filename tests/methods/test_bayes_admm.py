"""Tests of BayesADMM on clients with Gaussian likelihoods."""

import conjugate
import numpy as np
import pytest
import toys

from bfl_tf import parts, statistics
from bfl_tf.methods import bayes_admm

ADMM = {
  'client_optimizer': 'ivon',
  'client_parts': ('bayes_admm',),
  'weighting': 'equal',
  'ivon.prior_scale': conjugate.PRIOR_SCALE,
  'ivon.initial_scale': 0.4,
}


@pytest.mark.parametrize('rho, damping', [(1.0, 0.1), (0.5, 1), (1 / 6, 1)])
def test_the_error_with_conjugate_clients_follows_the_recursion(rho, damping):
  """At rho = 1 / K and damping 1, one round gives the posterior."""
  settings = {'bayes_admm.rho': rho, 'bayes_admm.damping': damping}
  experiment = toys.experiment(**ADMM, **settings)
  played = toys.rounds(experiment, 5, engine=conjugate.engine)
  share = 1 / (1 + 6 * rho)
  error = conjugate.eta(played[0].state.model) - conjugate.POSTERIOR
  lacking = -error  # The sum of likelihoods minus the sum of duals.
  for number, each in enumerate(played[1:], start=1):
    error = (1 - share) * (error + lacking / (6 * rho))
    lacking = (1 - damping) * lacking
    error -= share * lacking
    found = conjugate.eta(each.state.model) - conjugate.POSTERIOR
    np.testing.assert_allclose(found, error, atol=2e-5)
    assert damping < 1 or rho > 0.2 or np.abs(error).max() < 1e-9, number


def test_clients_and_server_agree_on_the_duals():
  experiment = toys.experiment(**ADMM, batch_size=150)
  *_, last = toys.rounds(experiment, 3)
  (part,) = experiment.plan.locals
  slot = last.state.slots['bayes_admm']
  kept = [memory['bayes_admm'] for memory in last.state.memories.values()]
  ctx = toys.context(last.state.model, part.shared(slot))
  known = sum(part.dual(ctx, moved).numpy() for moved in kept)
  known += [[0], [conjugate.PRIOR_SCALE**-2]]
  np.testing.assert_allclose(known, slot['known'], rtol=1e-9)


def test_a_client_that_joins_late_does_not_change_the_limit():
  @toys.Engine
  def late(experiment, state, clients):
    yield from conjugate.engine(experiment, state, clients[state.round < 3 :])

  settings = {'bayes_admm.rho': 0.5, 'bayes_admm.damping': 1}
  experiment = toys.experiment(**ADMM, **settings)
  *_, last = toys.rounds(experiment, 60, engine=late)
  error = conjugate.eta(last.state.model) - conjugate.POSTERIOR
  np.testing.assert_allclose(error, 0, atol=2e-5)


def test_a_negative_precision_is_rejected_with_the_damping_flag():
  part = bayes_admm.BayesADMM(run=parts.RunFacts(num_clients=6))
  model = toys.model(np.zeros(15), 0.4)
  update = statistics.ClientUpdate(0, 1, model)
  sums = {**part.terms(update, 1.0, model), 'weight': 1.0, 'max_weight': 1.0}
  sums['moved'] = np.full([2, 15], -1e3)
  with pytest.raises(ValueError, match=r'bayes_admm\.damping'):
    toys.stepped(part, model, model, part.slot(model), sums)
