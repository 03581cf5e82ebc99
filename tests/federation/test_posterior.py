"""Tests of parts with a Gaussian over all weights of a deterministic net."""

import dataclasses
from typing import ClassVar

import numpy as np
import tensorflow as tf
import toys

from bfl_tf import parts


def own(name):
  return f'{__name__}:{name}'


@dataclasses.dataclass(frozen=True)
class Quiet(toys.Idle):
  """Makes all weights random and leaves their scales unchanged."""

  name: ClassVar[str] = 'quiet'
  fits_posterior = True


@dataclasses.dataclass(frozen=True)
class Spread(Quiet):
  """Sets scale and factor to the client's update."""

  name: ClassVar[str] = 'spread'

  def begin(self, ctx, memory):
    return parts.Start(ctx.start, ctx.start.mean)

  def end(self, model, carry, trace):
    moved = model.mean - carry
    factor = tf.stack([moved, 0.1 * tf.ones_like(moved)])
    scale = 0.01 + tf.abs(moved)
    return parts.Sent(model._replace(scale=scale, factor=factor))


SPREAD = {'client_parts': (own('Spread'),), 'sgd.momentum': 0.5}


def test_nwa_of_gaussians_has_the_mean_of_fedavg_bit_for_bit():
  points, _ = toys.execute(toys.experiment(**{'sgd.momentum': 0.5}))
  state, infos = toys.execute(toys.experiment(**SPREAD))
  assert np.array_equal(state.model.loc, points.model.point)
  assert infos[0]['clients_rejected'] == 0


def test_scales_that_no_part_sets_stay_at_the_floor():
  changes = {**SPREAD, 'client_parts': (own('Quiet'),), 'pooling': 'ws'}
  experiment = toys.experiment(**{'min_scale': 1e-4}, **changes)
  begin = experiment.initial_weights()
  assert np.all(begin.scale == np.float32(1e-6))
  assert begin.factor.shape == (0, 15)
  state, (info, _) = toys.execute(experiment)
  assert np.all(state.model.scale == np.float32(1e-4))
  assert info['floored_fraction'] == 1
  assert 'factor_fraction' not in info


def test_the_rank_may_change_from_round_to_round():
  experiment = toys.experiment(pooling='toys:Stack', **SPREAD)
  _, *played = toys.rounds(experiment, 3)
  assert [len(p.state.model.factor) for p in played] == [12, 12, 12]
  down = [p.info['bytes_down'] for p in played]
  assert down == [6 * 4 * 15 * (2 + rank) for rank in (0, 12, 12)]


def test_distillation_and_fine_tuning_keep_the_covariance():
  server = {'num_server_examples': 60, 'pooling': 'toys:Stack', **SPREAD}
  plain, _ = toys.execute(toys.experiment(**server), 1)
  for name, changes in (
    ('distil', {'distil.optimizer': 'sgd', 'distil.epochs': 2}),
    ('fine_tune', {'fine_tune.patience': 0, 'fine_tune.epochs': 2}),
  ):
    changes['server_parts'] = (name,)
    state, _ = toys.execute(toys.experiment(**changes, **server), 1)
    assert np.array_equal(state.model.scale, plain.model.scale)
    assert np.array_equal(state.model.factor, plain.model.factor)
    assert not np.array_equal(state.model.loc, plain.model.loc)
