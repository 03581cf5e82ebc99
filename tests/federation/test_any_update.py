"""Tests that an invalid update does not affect the round of other clients.

Hypothesis draws the defect of the update; these tests train only once.
"""

import functools

import hypothesis
from hypothesis import strategies
from hypothesis.extra import numpy as arrays
import numpy as np
import toys

from bfl_tf import federation
from bfl_tf.federation import engine

ANYTHING = strategies.one_of(
  strategies.none(),
  strategies.integers(),
  strategies.floats(),
  strategies.text(max_size=3),
  strategies.just({}),
  strategies.lists(strategies.floats(), max_size=2),
  arrays.arrays(
    arrays.scalar_dtypes(), arrays.array_shapes(min_dims=0, max_side=3)
  ),
)
FLOATS = strategies.floats(width=32)
PLACES = ('model', 'extras', 'memory', 'trace')


@functools.cache
def begun():
  """Returns an experiment, its state, and the replies of all six clients."""
  pieces = toys.experiment(variant='flipout', client_parts=('toys:Counter',))
  state = federation.initial_state(pieces).state
  came = engine.Local()(pieces, state, range(6))
  return pieces, state, sorted(came)


def played(replies):
  pieces, state, _ = begun()
  return federation.federated_round(
    pieces, state, toys.Engine(lambda *_: iter(replies))
  )


@functools.cache
def without(client):
  """Returns the round without a client's reply; None: with all replies."""
  return played([reply for reply in begun()[2] if reply[0] != client])


def test_a_client_that_does_not_reply_is_rejected():
  info = without(2).info
  assert info['clients_rejected'] == 1
  assert info['rejected_reasons'] == '2: no reply'


def in_tree(data, tree):
  """Changes or deletes a value of a structure of named arrays."""
  is_tuple = hasattr(tree, '_asdict')
  named = dict(tree._asdict() if is_tuple else tree)
  name = data.draw(strategies.sampled_from(sorted(named)))
  value = named[name]
  how = data.draw(strategies.sampled_from(['number', 'number', 'all', 'none']))
  if how == 'none' and not is_tuple:
    del named[name]
    return named
  if how == 'none':
    new = None
  elif isinstance(value, dict) and value:
    new = in_tree(data, value)
  elif how == 'all' or isinstance(value, dict) or not value.size:
    new = data.draw(ANYTHING)
  else:
    new = np.array(value)
    place = data.draw(strategies.integers(0, new.size - 1))
    is_float = new.dtype.kind == 'f'
    new.reshape(-1)[place] = data.draw(FLOATS) if is_float else -3
  return tree._replace(**{name: new}) if is_tuple else {**named, name: new}


def changed(data, reply):
  """Returns replies of a client after an arbitrary change."""
  client, update = reply
  what = data.draw(
    strategies.sampled_from(
      [*PLACES, 'num_examples', 'client_id', 'update', 'twice', 'failure']
    )
  )
  if what in ('num_examples', 'client_id'):
    return [(client, update._replace(**{what: data.draw(ANYTHING)}))]
  if what == 'update':
    return [(client, data.draw(ANYTHING))]
  if what == 'twice':
    number = data.draw(strategies.sampled_from([client, -1, 10**6]))
    return [reply, (number, update)]
  if what == 'failure':
    return [(client, MemoryError('\n'))]
  tree = in_tree(data, getattr(update, what))
  return [(client, update._replace(**{what: tree}))]


@hypothesis.settings(max_examples=100)
@hypothesis.given(strategies.integers(0, 5), strategies.data())
def test_an_arbitrary_update_is_rejected_or_bounded_by_its_weight(client, data):
  pieces, _, good = begun()
  came = changed(data, good[client])
  again = played([*good[:client], *came, *good[client + 1 :]])
  state, info = again.state, again.info
  assert info['clients_pooled'] + info['clients_rejected'] == 6
  if info['clients_rejected']:
    assert info['rejected'] == str(client) and info['rejected_reasons']
    assert toys.same(state, without(client).state)
    return
  sizes = [len(indices) for indices in pieces.partition]
  sent = next(update.model.mean for k, update in came if k == client)
  moved = np.abs(sent - good[client][1].model.mean.astype(np.float64))
  most = moved * sizes[client] / sum(sizes)
  beyond = np.abs(state.model.mean - without(None).state.model.mean) - most
  assert np.all(np.isfinite(state.model.scale))
  assert np.all(beyond <= 1e-6 * np.maximum(1, np.abs(sent)))
