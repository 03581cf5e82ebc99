"""One-shot runs whose clients' posteriors are made of seeds, not trained."""

import fake
import numpy as np
import toys

from bfl_tf import seeds

SETTINGS = {
  'client_parts': ('swag',),
  'pooling': 'product',
  'swag.rank': 2,
  'swag.period': 1,
  'batch_size': 150,
  'local_epochs': 4,
  'num_rounds': 1,
  'refine': ('keep',),
}


def experiment(**changes):
  return toys.experiment(**SETTINGS | changes)


def engine(experiment, state, clients, change=0):
  """In place of `engine.local`: scales and factors of every client's own."""
  for client in clients:
    arrival = fake.arrival(experiment, state, client)
    rng = seeds.generator(0, 'made', client, change)
    model = arrival.update.model
    size = model.loc.size
    drawn = {
      'loc': rng.normal(size=size),
      'scale': rng.uniform(0.1, 1.0, size),
      'factor': rng.normal(0, 0.3, [2, size]),
      'buffers': rng.uniform(1, 2, model.buffers.size),
    }
    drawn = {name: np.float32(value) for name, value in drawn.items()}
    update = arrival.update._replace(model=model._replace(**drawn))
    yield arrival._replace(update=update)


def played(experiment):
  return toys.play(experiment, 1, engine=engine)[0]


def without(experiment, client):
  """One round in which a client was never there."""

  def others(experiment, state, clients):
    return engine(experiment, state, [k for k in clients if k != client])

  return toys.play(experiment, 1, engine=others)[0]
