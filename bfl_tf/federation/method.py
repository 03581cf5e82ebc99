"""The server side of a method: pooling rule, weighting and stages.

Invalid combinations of these pieces raise an error here, before the run trains
or writes anything.
"""

from collections.abc import Callable, Mapping
import dataclasses
import functools
from typing import Any

import numpy as np

from bfl_tf import server, training, weights
from bfl_tf.config import selection
from bfl_tf.declare import user_code
from bfl_tf.federation import admission, compatibility
from bfl_tf.federation.plan import Plan
from bfl_tf.server import pooling


@dataclasses.dataclass(frozen=True)
class Method(Plan):
  """The plan of the clients, and the server side.

  Attributes:
    stages: Chain of server stages: those that client parts need, then
      `--server_step`, recalibration of batch normalization, and `--refine`.
  """

  rule: Any
  weighting: Any
  privacy: server.Privacy
  stages: tuple
  start: tuple
  layout: weights.Layout
  build_model: Callable

  @classmethod
  def build(cls, plan: Plan, resources: server.Resources) -> 'Method':
    """Adds the server side to a plan; a ValueError names flag and fix."""
    config, worker = plan.config, resources.workers[0]
    plan = plan.with_layout(worker.layout)
    rule = config.make('pooling', pooling.Rule)
    weighting = config.make('weighting', pooling.Weighting)
    compatibility.check_rule(plan, rule, worker.layout)
    compatibility.check_weighting(config, weighting)
    of_run = {
      'resources': resources,
      'num_classes': resources.num_classes,
      'client_optimizer': plan.optimizer,
    }
    start, step, refine = (
      config.chain(flag, server.Stage, **of_run)
      for flag in ('start', 'server_step', 'refine')
    )
    between = (server.Recalibrate(resources),) if resources.recalibrates else ()
    stages = _with_needed(plan, step + between + refine, of_run)
    compatibility.check_stages(config, stages, start)
    method = cls(
      **vars(plan),
      rule=rule,
      weighting=weighting,
      privacy=config.privacy_mechanism,
      stages=stages,
      start=start,
      layout=worker.layout,
      build_model=plan.network(worker.inputs.shape, resources.num_classes),
    )
    # Traces the hooks of client parts, so that they fail before any round.
    flag = f'--client_parts={",".join(config.client_parts)}'
    user_code.call(flag, lambda: method.result_spec)
    compatibility.check_privacy(method)
    method.privacy.check()
    return method

  def initial_weights(self) -> weights.Weights:
    """Returns the weights before the first round; the seed determines them."""
    variables = weights.Variables.of(self.build_model(), self.inference.scope)
    start = weights.Weights(*map(np.asarray, weights.read(variables)))
    return self.inference.initial(start)

  def fresh_slots(self, model: weights.Weights) -> dict[str, Any]:
    """Returns the slots before the first round, by stage and for the bounds.

    The bounds of a private run must not depend on other clients.
    """
    bounds = {admission.SLOT: admission.fresh_history()}
    slots = {s.name: s.init(model) for s in self.stages if s.has_slot}
    return slots if self.privacy.is_private else {**slots, **bounds}

  @property
  def statistics(self) -> list:
    """Statistics that stages need in addition to the pooled model."""
    return [s for stage in self.stages for s in stage.statistics]

  def shared(self, slots: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a part receives from its server stage, by part name."""
    return {
      part.name: stage.shared(slots[stage.name])
      for part in self.parts
      for stage in self.stages
      if part.server_stage and isinstance(stage, part.server_stage)
      if stage.has_slot
    }

  @functools.cached_property
  def result_spec(self) -> training.Result:
    """`tf.TensorSpec`s of the result of a client's training.

    Memories and slots keep their initial shapes.
    """
    model = self.layout.standard()
    shared = self.shared(self.fresh_slots(model))
    return training.result_spec(
      self.parts,
      self.layout,
      shared,
      self.fresh_memory(model),
      checks_hooks=not self.config.debug,
    )


def _with_needed(plan, stages, of_run):
  """Adds the stages that client parts need, at the front."""
  selection.check_unique('--server_step and --refine', stages)
  first = []
  for needed in plan.config.selection.needed.values():
    own = [stage for stage in stages if isinstance(stage, needed.factory)]
    first += own or [needed.make(plan.config.context(**of_run))]
  return (*first, *(stage for stage in stages if stage not in first))
