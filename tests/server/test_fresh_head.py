"""Tests of the server part that draws the last layer anew."""

import numpy as np
import of_papers
import toys

SETTINGS = {
  'model': 'mlp',
  'mlp.hidden_units': (5,),
  'num_server_examples': 30,
  'fine_tune.epochs': 2,
  'fine_tune.patience': 0,
}
HEAD = 5 * 3 + 3


def begun(**changes):
  pieces = toys.experiment(**{**SETTINGS, **changes})
  return pieces, toys.rounds(pieces, 0)[0]


def test_only_the_last_layer_is_redrawn(variant='flipout'):
  _, trained = begun(start=('fine_tune',), variant=variant)
  pieces, played = begun(
    start=('fine_tune', of_papers.FRESH_HEAD), variant=variant
  )
  old, new = trained.state.model, played.state.model
  differs = old.mean != new.mean
  assert not differs[:-HEAD].any() and differs[-HEAD:-3].all()
  assert played.info['redrawn_weights'] == HEAD
  # The layer has neither the trained nor the initial weights.
  initial = pieces.initial_weights()
  assert np.all(initial.mean[-HEAD:-3] != new.mean[-HEAD:-3])
  same = old.scale == new.scale
  assert same[:-HEAD].all() and not same[-HEAD:].any()


def test_the_redrawn_head_depends_only_on_the_seed():
  heads = [
    begun(start=(of_papers.FRESH_HEAD,), seed=seed)[1].state.model.mean[-HEAD:]
    for seed in (0, 0, 1)
  ]
  assert np.array_equal(heads[0], heads[1])
  assert not np.array_equal(heads[0], heads[2])
