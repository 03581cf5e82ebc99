"""Reinitialization of the last layer, so that clients share only the features.

FL-SWAG (section 8.3): the server pre-trains a network and sends all layers but
the last. This is the last part of `--start`, after `fine_tune`.

References:
  M. Makni. Deriving FL-SWAG as a one-shot method. 2022, section 8.3.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from bfl_tf import models, weights
from bfl_tf.parts import Outcome, Server

_LARGEST_SEED = 2**31


@dataclasses.dataclass(frozen=True)
class FreshHead(Server):
  """Reinitializes the last layer with weights, equally for all clients."""

  name = 'fresh_head'

  def step(self, model, sums, slot, ctx):
    worker = ctx.tools.workers[0]
    drawn = worker.build_model(seed=abs(int(ctx.seed[0])) % _LARGEST_SEED)
    variables = weights.Variables.of(drawn, worker.layout.posterior_scope)
    fresh = weights.Weights(*map(np.asarray, weights.read(variables)))
    last = {id(v) for v in models.last_layer(drawn).trainable_variables}
    head = np.concatenate(
      [np.full(v.shape.num_elements(), id(v) in last) for v in variables.mean]
    )
    model = model.replace_mean(np.where(head, fresh.mean, model.mean))
    if variables.untransformed_scale:
      of_loc = head[: model.loc.size]
      scale = np.where(of_loc, fresh.scale, model.scale)
      model = model._replace(scale=scale)
    return Outcome(model, slot, {'redrawn_weights': int(head.sum())})


fresh_head = FreshHead
