"""Tests of methods as values, and of a method of one's own."""

import dataclasses

import numpy as np
import pytest
import toys

from bfl_tf import parts, training
from bfl_tf.config.config import Config
from bfl_tf.federation import personal
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


class VEM(parts.Local):
  """pFedVEM (Zhu et al. 2023): the prior of personal posteriors is learned.

  Each q_k minimizes -E_q log p(D_k | theta) + KL[q || N(m, v)], from the last
  q_k. The broadcast N(m, v) has the moments of the mixture of all q_k.
  """

  name = 'pfedvem'

  def memory(self, model):
    return {'loc': model.loc, 'scale': model.scale}

  def begin(self, ctx, memory):
    prior = parts.Normal(ctx.broadcast.loc, ctx.broadcast.scale)
    return parts.Start(ctx.start._replace(**memory), prior)

  def prior(self, prior):
    return prior

  def end(self, model, prior, trace):
    return parts.Sent(model, self.memory(model))

  def personal(self, model, memory):
    return model._replace(**memory)


pfedvem = Method(
  (VEM(), pooling.LinearPooling()), training.Flipout(initial_scale=0.05)
)


def test_a_method_of_a_user_has_personal_models():
  experiment = toys.experiment(**pfedvem.flags)
  _, first, last = toys.rounds(experiment, 2)
  for client, memory in last.state.memories.items():
    found = personal.model_of(experiment.plan, last.state.model, memory)
    assert toys.same(found.loc, memory['pfedvem']['loc'])
    assert toys.same(found.scale, memory['pfedvem']['scale'])
    assert not np.any(found.loc == last.state.model.loc)
    # The second training began at the first result, not at the broadcast.
    assert not toys.same(first.state.memories[client], memory)
