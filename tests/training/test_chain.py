"""What a training will return is known before there was one."""

import dataclasses
from typing import ClassVar

import numpy as np
import pytest
import tensorflow as tf
import toys

from bfl_tf import clients, methods, training


@dataclasses.dataclass(frozen=True)
class Odd(toys.Idle):
  """Carries plain numbers and sends a matrix of integers."""

  name: ClassVar[str] = 'odd'

  def begin(self, start, shared, memory):
    return 0, 1.0

  def after_step(self, mean, carry, step):
    return None, (carry[0] + 1, carry[1] / 2)

  def finish(self, model, carry, trace):
    return model, tf.fill([2, tf.size(model.loc) + 1], carry[0]), None


# For what no default gives; their own tests play rounds with them.
_OTHERS = (methods.bayes_admm, methods.fednova, methods.pvi)
_ASK = (clients.Swag, *(method.Part for method in _OTHERS))


@pytest.mark.parametrize(
  'parts',
  [
    (),
    *[(part(),) for part in methods.PARTS.values() if part not in _ASK],
    (clients.Swag(0, 1, rank=0, fits_scale=False),),
    (Odd(), toys.Counter(), methods.PARTS['scaffold']()),
  ],
)
def test_it_is_what_comes_back(parts, variant='flipout'):
  worker = toys.worker(variant=variant, parts=parts)
  model = worker.layout.standard()
  slots = {'scaffold': methods.scaffold.Stage(2).init(model)}
  shared = {p.name: slots[p.needs] for p in parts if p.needs in slots}
  memory = {
    part.name: part.init_memory(model)
    for part in parts
    if hasattr(part, 'init_memory')
  }
  like = training.result_like(parts, worker.layout, shared, memory)
  job = toys.job(toys.start(worker), shared=shared, memory=memory)
  found = worker.train(job)
  tf.nest.assert_same_structure(found, like)
  for value, spec in zip(*map(tf.nest.flatten, (found, like))):
    assert training.mismatch(value, spec) is None
    # All is known but what only the training finds out.
    assert spec.shape.rank == np.ndim(value)
