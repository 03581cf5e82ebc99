"""Clients with Gaussian likelihoods, for tests of methods with a prior."""

import numpy as np
import tensorflow as tf
import toys

from bfl_tf import statistics, training, weights

# Natural parameters eta of the likelihoods, by client.
RNG = np.random.default_rng(0)
PRECISION = RNG.uniform(0.5, 3, [6, 15])
LIKELIHOODS = np.stack([PRECISION * RNG.normal(size=[6, 15]), PRECISION], 1)
PRIOR_SCALE = 0.8
POSTERIOR = LIKELIHOODS.sum(0) + [[0], [PRIOR_SCALE**-2]]


def eta(model):
  return weights.natural(model).numpy()


def moments(of_eta):
  shift, precision = of_eta
  return np.float32(shift / precision), np.float32(precision**-0.5)


@toys.Engine
def engine(experiment, state, clients):
  """Returns the exact optimum of each client."""
  (part,) = experiment.method.parts
  for client in clients:
    size = len(experiment.partition[client])
    fresh = experiment.method.fresh_memory(state.model)
    kept = state.memories.get(client, fresh)[part.name]
    arguments = state.model, state.slots[part.name], kept
    likelihood = LIKELIHOODS[client] / part.prior_weight
    loc, scale = moments(part.prior(*arguments).numpy() + likelihood)
    result = training.Chain([part]).finish(
      state.model._replace(loc=loc, scale=scale),
      (part.begin(*arguments),),
      toys.trace(experiment.method, state.round, client, size),
    )
    sent = tf.nest.map_structure(np.asarray, result)
    yield (
      client,
      statistics.ClientUpdate(client, size, *sent[:2], sent[3], sent[2]),
    )
