"""Tests of parts that define the prior of a client."""

import numpy as np
import pytest
import toys

from bfl_tf import parts, training, weights

FLIPOUT = {'variant': 'flipout'}
ONE = {'num_workers': 1}


def own(name):
  return (f'{__name__}:{name}',)


class Broadcast(parts.Local):
  """Uses the broadcast posterior as the prior."""

  name = 'broadcast'

  def begin(self, ctx, memory):
    return parts.Start(ctx.start, weights.natural(ctx.broadcast))

  def prior(self, carry):
    return parts.Natural(carry)


class Personal(parts.Local):
  """Uses the client's last posterior, with doubled scale, as the prior.

  Its KL term has the weight 0.5.
  """

  name = 'personal'

  def memory(self, model):
    return {'loc': np.zeros_like(model.loc), 'scale': np.ones_like(model.loc)}

  def begin(self, ctx, memory):
    own = ctx.start._replace(loc=memory['loc'], scale=2 * memory['scale'])
    return parts.Start(ctx.start, weights.natural(own))

  def prior(self, carry):
    return parts.Natural(carry, 0.5)

  def end(self, model, carry, trace):
    return parts.Sent(model, {'loc': model.loc, 'scale': model.scale})


def test_the_broadcast_as_prior_equals_update_prior_bit_for_bit():
  flag, infos = toys.execute(
    toys.experiment(**{'flipout.update_prior': True}, **FLIPOUT, **ONE)
  )
  changes = {'client_parts': own('Broadcast'), **FLIPOUT, **ONE}
  part, others = toys.execute(toys.experiment(**changes))
  assert toys.same(flag, part)
  assert infos == others
  assert not toys.same(flag, toys.execute(toys.experiment(**FLIPOUT, **ONE))[0])


def test_the_prior_may_depend_on_the_memory_of_the_client():
  worker = toys.worker(parts=(Personal(),), **FLIPOUT)
  begin = toys.start(worker)
  rng = np.random.default_rng(0)
  memory = {
    'loc': np.float32(rng.normal(size=15)),
    'scale': np.float32(rng.uniform(1, 2, 15)),
  }
  task = toys.task(begin, rate=1e-6, memory={'personal': memory})
  loss = worker.train(task).trace.loss
  objective = training.Objective(prior_scale=1e3)
  wide = toys.worker(inference=training.Inference(objective), **FLIPOUT)
  other = wide.train(task._replace(memory={})).trace.loss

  def divergence(loc, scale):
    ratio, distance = begin.scale / scale, (begin.loc - loc) / scale
    return np.sum(0.5 * (ratio**2 + distance**2 - 1) - np.log(ratio)) / 50

  expected = 0.5 * divergence(memory['loc'], 2 * memory['scale'])
  expected -= divergence(0, 1e3)
  assert loss - other == pytest.approx(expected, rel=1e-3)
  # The memory is stored between rounds.
  changes = {'client_parts': own('Personal'), **FLIPOUT, **ONE}
  state, _ = toys.execute(toys.experiment(**changes))
  assert all(np.any(m['personal']['loc']) for m in state.memories.values())


def test_a_second_prior_and_an_unsupported_prior_are_rejected():
  both = own('Broadcast') + own('Personal')
  for changes in (
    {'client_parts': both, **FLIPOUT},
    {'client_parts': both[:1], 'flipout.update_prior': True, **FLIPOUT},
    {'client_parts': both[:1]},
    {'client_parts': both[:1], 'pooling': 'dwc', **FLIPOUT},
  ):
    with pytest.raises(ValueError, match='broadcast'):
      toys.experiment(**changes)
