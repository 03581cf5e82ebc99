"""Clients with Gaussian likelihoods or quadratic losses, for tests."""

import numpy as np
import toys

from bfl_tf import parts, statistics, training, weights
from bfl_tf.federation import client as client_lib

# Natural parameters eta of the likelihoods, by client.
RNG = np.random.default_rng(0)
PRECISION = RNG.uniform(0.5, 3, [6, 15])
LIKELIHOODS = np.stack([PRECISION * RNG.normal(size=[6, 15]), PRECISION], 1)
PRIOR_SCALE = 0.8
POSTERIOR = LIKELIHOODS.sum(0) + [[0], [PRIOR_SCALE**-2]]
# Client k's mean loss is sum_i CURVATURE[k, i] (w_i - OPTIMUM[k, i])^2 / 2.
CURVATURE, OPTIMUM = RNG.uniform(0.5, 3, [6, 15]), RNG.normal(size=[6, 15])


def eta(model):
  return weights.natural(model).numpy()


def moments(of_eta):
  shift, precision = of_eta
  return np.float32(shift / precision), np.float32(precision**-0.5)


def answer(experiment, state, client, train):
  """Returns a client's reply with the model of `train`.

  Its arguments are the part, the carry, and the client's work.
  """
  plan, size = experiment.plan, len(experiment.partition[client])
  (part,) = plan.locals
  memory = plan.fresh_memory(state.model) | state.memories.get(client, {})
  chain = training.Chain([part])
  ctx = toys.context(state.model, plan.shared(state.slots))
  _, (carry,) = chain.begin(ctx, memory)
  work = client_lib.work(plan, state.round, client, size)
  model = train(part, carry, work)
  trace = toys.trace(plan, state.round, client, size)
  result = parts.numpy(chain.end(model, (carry,), trace))
  return client, statistics.ClientUpdate(
    client, size, result.model, result.extras, result.trace, result.memory
  )


@toys.Engine
def engine(experiment, state, clients):
  """Returns the exact optimum of each client with a Gaussian likelihood."""
  for client in clients:

    def train(part, carry, work, client=client):
      prior = part.prior(carry)
      likelihood = LIKELIHOODS[client] / prior.weight
      loc, scale = moments(prior.eta.numpy() + likelihood)
      return state.model._replace(loc=loc, scale=scale)

    yield answer(experiment, state, client, train)


def slope(client, mean):
  return np.float32(CURVATURE[client] * (mean - OPTIMUM[client]))


@toys.Engine
def solving(experiment, state, clients):
  """Trains each client until its gradient, changed by its part, is zero."""
  for client in clients:

    def train(part, carry, work, client=client):
      step = training.Step(1.0, 1.0, None, np.float32(work.num_examples))
      zero = np.zeros(15, np.float32)
      # The gradient is linear.
      at_0, at_1 = (
        np.asarray(part.gradient(slope(client, mean), mean, carry, step))
        for mean in (zero, zero + 1)
      )
      return state.model.replace_mean(-at_0 / (at_1 - at_0))

    yield answer(experiment, state, client, train)


@toys.Engine
def descending(experiment, state, clients):
  """Trains each client by gradient descent, with the momentum of the config."""
  momentum = experiment.config.get('sgd.momentum') or 0.0
  for client in clients:

    def train(part, carry, work, client=client):
      mean, velocity = state.model.mean, 0.0
      for rate in np.float32(work.rates):
        step = training.Step(1.0, rate, None, np.float32(work.num_examples))
        gradient = part.gradient(slope(client, mean), mean, carry, step)
        velocity = momentum * velocity + gradient
        mean = mean - rate * velocity
        mean, _ = part.after(mean, carry, step)
      return state.model.replace_mean(mean)

    yield answer(experiment, state, client, train)


def played(num_rounds, engine=solving, **changes):
  """Returns sizes of the clients, and the state before and after each round."""
  experiment = toys.experiment(**changes)
  rounds = toys.rounds(experiment, num_rounds, engine=engine)
  sizes = np.array([len(part) for part in experiment.partition])
  return sizes, [each.state for each in rounds]


def weighted_optimum(sizes, precision=0.0):
  total = (sizes[:, None] * CURVATURE).sum(0) + precision
  return (sizes[:, None] * CURVATURE * OPTIMUM).sum(0) / total
