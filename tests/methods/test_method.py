"""Tests of methods as values, and of a method of one's own."""

import dataclasses

import pytest

from bfl_tf import parts, training
from bfl_tf.config.config import Config
from bfl_tf.methods import fedavgm, fedprox, Method, NAMED
from bfl_tf.server import pooling, teacher_posteriors


def test_the_union_of_two_methods_has_the_parts_of_both():
  ours = Method((fedprox.Proximal(0.5),), optimizer=training.SGD(0.9))
  theirs = Method((fedavgm.Momentum(),), weighting=pooling.Equal())
  both = ours | theirs
  assert both.parts == ours.parts + theirs.parts
  assert both.optimizer == ours.optimizer
  assert both.weighting == theirs.weighting
  with pytest.raises(ValueError, match='optimizer'):
    ours | Method(optimizer=training.SGD(0.5))


def _resolved(part):
  """Replaces the name of a posterior, which is its default."""
  if getattr(part, 'ensemble', None) and part.ensemble.posterior == 'auto':
    auto = dataclasses.replace(
      part.ensemble, posterior=teacher_posteriors.AutoPosterior()
    )
    return dataclasses.replace(part, ensemble=auto)
  return part


@pytest.mark.parametrize('name', NAMED)
def test_the_flags_of_a_method_make_its_components(name):
  method = NAMED[name]
  config = Config.of({'dataset': 'toys:blobs', **method.flags})
  made = [
    *config.chain('client_parts', parts.Local),
    *config.chain('server_parts', parts.Server),
  ]
  if 'pooling' in method.flags:
    made.append(config.make('pooling', parts.Pool))
  assert {*made} == {*map(_resolved, method.parts)}
  for field, base, own in (
    ('variant', object, method.variant),
    ('client_optimizer', training.Optimizer, method.optimizer),
    ('weighting', pooling.Weighting, method.weighting),
  ):
    assert own is None or config.make(field, base) == own
