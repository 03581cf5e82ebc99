"""Tests of PVI on clients with Gaussian likelihoods and on trained clients."""

import conjugate
from conjugate import eta
import numpy as np
import pytest
import toys

from bfl_tf import federation, parts
from bfl_tf.federation.engine import Local
from bfl_tf.methods import pvi
from bfl_tf.runs import checkpoints

PVI = {'variant': 'flipout', 'client_parts': ('pvi',)}
PRIOR = {
  'flipout.prior_scale': conjugate.PRIOR_SCALE,
  'flipout.initial_scale': 0.4,
}


def factors(experiment, state):
  (part,) = experiment.plan.locals
  ctx = toys.context(state.model, state.slots['pvi'])
  zero = np.zeros([2, state.model.loc.size])
  memories = {k: state.memories.get(k, {'pvi': zero}) for k in range(6)}
  return [part.factor(ctx, kept['pvi']).numpy() for kept in memories.values()]


@toys.Engine
def rejected(experiment, state, clients):
  """Makes the update of another client invalid in every round."""
  for client, update in conjugate.engine(experiment, state, clients):
    if client == state.round % 6:
      bad = update.model._replace(loc=np.full([15], np.nan, 'f4'))
      update = update._replace(model=bad)
    yield client, update


@pytest.mark.parametrize(
  'changes, rounds, engine',
  [
    ({'clients_per_round': 4}, 30, conjugate.engine),
    ({'clients_per_round': 1, 'pvi.damping': 1}, 30, conjugate.engine),
    ({'clients_per_round': 4}, 40, rejected),
    (
      {'server_parts': ('momentum',), 'momentum.decay': 0.3},
      30,
      conjugate.engine,
    ),
    ({}, 3, Local()),
  ],
)
def test_the_posterior_is_the_prior_times_all_factors(
  changes, rounds, engine, tmp_path
):
  """The equation holds after every round, for any order of clients."""
  changes = {'pvi.damping': 0.5, **PVI, **PRIOR, **changes}
  experiment = toys.experiment(**changes)
  (begin,) = toys.rounds(experiment, 0)
  state, start = begin.state, eta(begin.state.model)
  for _ in range(rounds):
    state = federation.federated_round(experiment, state, engine).state
    if state.round % 5 == 0:  # The run resumes from its checkpoint.
      checkpoints.save(state, tmp_path)
      state = checkpoints.restore(tmp_path)
    product = np.sum(factors(experiment, state), 0) + [[0], [0.8**-2]]
    near = {'rtol': 1e-6, 'atol': 1e-6 * np.abs(product).max()}
    np.testing.assert_allclose(eta(state.model), product, **near)
    if 'server_parts' not in changes:
      sent = start + sum(kept['pvi'] for kept in state.memories.values())
      np.testing.assert_allclose(eta(state.model), sent, **near)
  if isinstance(engine, toys.Engine):
    mean, scale = conjugate.moments(conjugate.POSTERIOR)
    np.testing.assert_allclose(state.model.loc, mean, atol=1e-4 * scale.max())
    np.testing.assert_allclose(state.model.scale, scale, rtol=1e-4)


@pytest.mark.parametrize('damping', [0.2, 1.0])
def test_the_error_with_conjugate_clients_falls_by_the_damping(damping):
  experiment = toys.experiment(**PVI, **PRIOR, **{'pvi.damping': damping})
  played = toys.rounds(experiment, 5, engine=conjugate.engine)
  begin = eta(played[0].state.model) - conjugate.POSTERIOR
  for number, each in enumerate(played):
    error = eta(each.state.model) - conjugate.POSTERIOR
    expected = (1 - damping) ** number * begin
    np.testing.assert_allclose(error, expected, atol=1e-5)


def test_a_client_at_its_optimum_sends_the_broadcast_model():
  experiment = toys.experiment(**PVI, **PRIOR)
  (part,) = experiment.plan.locals
  *_, last = toys.rounds(experiment, 2)
  memory = last.state.memories[3]['pvi']
  ctx = toys.context(last.state.model, last.state.slots['pvi'])
  sent = part.end(last.state.model, part.begin(ctx, memory).carry, None)
  assert toys.same(sent.model, last.state.model)
  assert toys.same(sent.memory, memory)


def test_pvi_with_one_client_equals_variational_inference():
  alone = {'num_clients': 1, 'partition': 'iid', 'num_workers': 1, **PRIOR}
  ours, _ = toys.execute(
    toys.experiment(**PVI, **alone, **{'pvi.damping': 1}), 3
  )
  central, _ = toys.execute(toys.experiment(variant='flipout', **alone), 3)
  for ours_, theirs in zip(ours.model, central.model):
    np.testing.assert_allclose(ours_, theirs, atol=1e-5)


def test_a_negative_cavity_precision_is_floored_and_counted():
  """The floor does not change the gradient of the mean, and it is counted."""
  run = parts.RunFacts(num_clients=6, prior_precision=0.8**-2)
  part, model = pvi.PVI(run=run), toys.model(np.linspace(-1, 1, 15), 0.4)
  ctx = toys.context(model, part.slot(model))
  memory = np.zeros([2, 15])
  memory[:, :3] = [[2.0], [9.0]]
  shift, precision = eta(model) - part.factor(ctx, memory).numpy()
  assert np.array_equal(precision < 0, np.arange(15) < 3)
  carry = part.begin(ctx, memory).carry
  held = part.prior(carry).eta.numpy()
  np.testing.assert_allclose(held[1, :3], 0.1 / 0.8**2, rtol=1e-6)
  pull = held[0] - held[1] * model.loc
  wanted = shift - precision * model.loc
  np.testing.assert_allclose(pull, wanted, rtol=1e-5, atol=1e-6)
  report = part.end(model, carry, None).report
  assert report['floored_fraction'] == np.float32(0.2)
