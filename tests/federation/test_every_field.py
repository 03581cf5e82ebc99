"""Tests that no number of one client's update harms the others.

For every client part, each field of an update gets values that no client would
send. The update is rejected, or all other clients still train in the next
round. Then a hostile client attacks in each of four rounds.
"""

import numpy as np
import of_papers
import pytest
import toys

from bfl_tf import federation, methods, trees
from bfl_tf.federation import engine

FLIPOUT = {'variant': 'flipout'}
CONFIGS = {
  'bayes_admm': {'client_optimizer': 'ivon', 'weighting': 'equal'},
  'feddyn': {},
  'fedlap': {},
  'fednova': {'sgd.momentum': 0.5, 'sgd.nesterov': True},
  'ditto': {},
  'fedpa': {'fedpa.samples': 2, 'fedpa.period': 1, 'local_epochs': 2},
  of_papers.INDEPENDENT_INIT: {},
  'keep_local': {},
  'langevin': {},
  'local_layers': {'local_layers.layers': '0/bias'},
  'pfedbayes': FLIPOUT,
  # These parts have no state that the server sums.
  f'proximal,{of_papers.PROJECTION},{of_papers.GRADIENT_NOISE}': FLIPOUT,
  'pvi': FLIPOUT,
  'scaffold': {},
  'swag': {'pooling': 'product', 'swag.rank': 2, 'swag.period': 1,
           'local_epochs': 4},
  of_papers.THINNING: {'thinning.burn_in': 0, 'thinning.every': 1,
               'thinning.num_samples': 1},
}  # fmt: skip
VALUES = (0, -1, 1e18, 1.2e-19, 1e-3, np.nan)


def test_every_part_has_a_config():
  assert methods.CLIENT_PARTS.keys() <= {*','.join(CONFIGS).split(',')}


@pytest.mark.parametrize('name', CONFIGS)
def test_no_update_of_a_client_harms_the_others(name):
  settings = {'client_parts': name.split(','), 'num_clients': 3}
  settings |= CONFIGS[name]
  # With batch normalization, a strange factor still stops `product`.
  if name not in ('local_layers', 'swag') and 'variant' not in settings:
    settings['model'] = 'toys:normalized'
  pieces = toys.experiment(**settings)
  begun = federation.initial_state(pieces).state
  check_strange_fields(pieces, begun)
  check_attacks(pieces, begun)


def check_strange_fields(pieces, begun):
  good = dict(engine.Local()(pieces, begun, range(3)))

  def played(replies):
    return federation.federated_round(
      pieces, begun, toys.Engine(lambda *_: iter(replies.items()))
    )

  others = {client: good[client] for client in (1, 2)}
  without = played(others).state
  assert not played(good).info['clients_rejected']
  for field, update in changed(good[0]):
    state, info, _ = played({0: update, **others})
    if info['clients_rejected']:
      assert info['rejected'] == '0', field
      assert toys.same(state, without), field
    else:
      after = federation.federated_round(pieces, state).info
      assert after['rejected'] in ('', '0'), (field, after)


def changed_by(mean, scale, buffers):
  """Returns an attack: factors of a change and of scales, and a value."""

  def attack(model, start):
    model = model.replace_mean(start.mean + mean * (model.mean - start.mean))
    return model._replace(
      scale=model.scale * np.float32(scale),
      factor=model.factor * np.float32(scale),
      buffers=np.full_like(start.buffers, buffers),
    )

  return attack


ATTACKS = (
  changed_by(-1000, 1, 1e6), changed_by(1, 1e-5, -1e18),
  changed_by(1000, 100, -1),
)  # fmt: skip


def check_attacks(pieces, begun):
  for attack in ATTACKS:

    @toys.Engine
    def hostile(experiment, state, clients, attack=attack):
      for client, update in engine.Local()(experiment, state, clients):
        if not client:
          update = update._replace(model=attack(update.model, state.model))
        yield client, update

    state = begun
    for _ in range(4):
      state, info, _ = federation.federated_round(pieces, state, hostile)
      assert info['rejected'] in ('', '0'), (attack, info)
    assert all(np.isfinite(vector).all() for vector in state.model)
    variances = state.model.buffers[pieces.plan.layout.is_variance()]
    assert np.all(variances >= 0)


def changed(update):
  """Yields updates with one changed field, and its name."""
  fields = update._asdict()
  for field, leaf in trees.leaves(fields):
    leaf = np.asarray(leaf)
    if field in ('client_id', 'num_examples') or not leaf.size:
      continue
    strange = [np.full_like(leaf, v) for v in of_type(leaf.dtype)]
    for value in [*strange, leaf[None], leaf.reshape(-1)[:0]]:
      tree: dict = {}
      for other, kept in trees.leaves(fields):
        trees.put(tree, other, value if other == field else kept)
      yield (field, value), rebuilt(update, tree)


def of_type(dtype):
  return VALUES if dtype.kind == 'f' else (0, -1, 2**30)


def rebuilt(update, tree):
  """Returns an update with the leaves of a tree."""
  model = update.model._replace(**tree['model'])
  trace = update.trace._replace(**{'report': {}} | tree['trace'])
  return update._replace(
    model=model,
    trace=trace,
    extras=tree.get('extras', {}),
    memory=tree.get('memory', {}),
  )
