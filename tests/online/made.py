"""One-shot runs with random posteriors of clients, for tests."""

import fake
import numpy as np
import toys

from bfl_tf import seeds
from bfl_tf.federation import engine

SETTINGS = {
  'client_parts': ('swag',),
  'pooling': 'product',
  'swag.rank': 2,
  'swag.period': 1,
  'batch_size': 150,
  'local_epochs': 4,
  'num_rounds': 1,
  # The random updates below are far from the broadcast.
  'max_update_norm': 0.0,
  'server_parts': ('store_updates',),
}


def experiment(**changes):
  return toys.experiment(**SETTINGS | changes)


def replies(experiment, state, clients, change=0):
  """Yields updates whose scales and factors differ between clients."""
  for client in clients:
    _, update = fake.reply(experiment, state, client)
    rng = seeds.generator(0, 'made', client, change)
    model = update.model
    size = model.loc.size
    rank = experiment.plan.result_spec.model.factor.shape[0]
    drawn = {
      'loc': rng.normal(size=size),
      'scale': rng.uniform(0.1, 1.0, size),
      'factor': rng.normal(0, 0.3, [rank, size]),
      'buffers': rng.uniform(1, 2, model.buffers.size),
    }
    drawn = {name: np.float32(value) for name, value in drawn.items()}
    yield client, update._replace(model=model._replace(**drawn))


class Engine(engine.Engine):
  """An engine that replaces `engine.Local`."""

  def __init__(self, change=0):
    self.change = change

  def __call__(self, experiment, state, clients):
    return replies(experiment, state, clients, self.change)


def played(experiment):
  return toys.execute(experiment, 1, engine=Engine())[0]


def without(experiment, client):
  """Returns the state after one round without a client."""

  @toys.Engine
  def others(experiment, state, clients):
    return replies(experiment, state, [k for k in clients if k != client])

  return toys.execute(experiment, 1, engine=others)[0]
