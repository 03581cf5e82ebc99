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
from bfl_tf.config import selection, user_code
from bfl_tf.federation import state
from bfl_tf.federation.plan import Plan
from bfl_tf.server import pooling


@dataclasses.dataclass(frozen=True)
class Method(Plan):
  """The plan of the clients, and the server side.

  Attributes:
    rule: Pooling rule.
    weighting: Client weighting.
    privacy: Privacy mechanism.
    stages: Chain of server stages: those that client parts need, then
      `--server_step`, recalibration of batch normalization, and `--refine`.
    start: Chain of server stages before the first round.
    layout: Layout of the model.
    build_model: Function that builds the model with its initial weights.
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
    rule = config.make('pooling', pooling.Rule)
    weighting = config.make('weighting', pooling.Weighting)
    _check_rule(rule, plan, worker.layout)
    of_run = {'resources': resources, 'num_classes': resources.num_classes}
    start, step, refine = (
      config.chain(flag, server.Stage, **of_run)
      for flag in ('start', 'server_step', 'refine')
    )
    _check_start(start)
    between = (server.Recalibrate(resources),) if resources.recalibrates else ()
    stages = _with_needed(plan, step + between + refine, of_run)
    _check_predictor(config, stages)
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
    method.privacy.check(method)
    return method

  def initial_weights(self) -> weights.Weights:
    """Returns the weights before the first round; the seed determines them."""
    variables = weights.Variables.of(self.build_model(), self.inference.scope)
    start = weights.Weights(*map(np.asarray, weights.read(variables)))
    return self.inference.initial(start)

  @property
  def statistics(self) -> list:
    """Statistics that stages need in addition to the pooled model."""
    return [s for stage in self.stages for s in stage.statistics]

  def shared(self, slots: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a part receives from its server stage, by part name."""
    stages = {type(stage): stage for stage in self.stages if stage.has_slot}
    return {
      part.name: stage.shared(slots[stage.name])
      for part in self.parts
      if (stage := stages.get(part.server_stage))
    }

  @functools.cached_property
  def result_spec(self) -> training.Result:
    """`tf.TensorSpec`s of the result of a client's training.

    Memories and slots keep their initial shapes.
    """
    model = self.layout.standard()
    shared = self.shared(state.fresh_slots(self.stages, model))
    return training.result_spec(
      self.parts, self.layout, shared, self.fresh_memory(model)
    )


def _check_rule(rule, plan, layout):
  """Rejects a rule that cannot pool the posteriors of this run."""
  config, objective = plan.config, plan.objective
  required = [part.requires.get('pooling', ()) for part in plan.parts]
  if not (layout.size('loc') or rule.takes_points):
    fix = (
      'a network with variational layers'
      if config.variant == 'flipout'
      else f'--variant=flipout in place of {config.variant}'
    )
    raise ValueError(
      f'--pooling={config.pooling} pools posteriors, but the network is '
      f'deterministic: set {fix}, or a method that gives all weights a '
      'posterior (--client_optimizer=ivon or laplace, --client_parts=swag). '
      '--pooling=nwa accepts deterministic networks.'
    )
  if rule.needs_prior and not (
    objective.update_prior or any(config.pooling in rules for rules in required)
  ):
    raise ValueError(
      f'--pooling={config.pooling} divides out the broadcast posterior, so '
      'that clients must use it as their prior: set '
      f'--{plan.inference.owner or "flipout"}.update_prior, or a client part '
      'that requires this rule.'
    )
  for name, value in vars(objective.standard()).items():
    if rule.needs_prior and vars(objective)[name] != value:
      raise ValueError(
        f'--pooling={config.pooling} divides out the whole prior: set '
        f'--{plan.inference.owner}.{name}={value}, not {vars(objective)[name]}.'
      )
  if not rule.takes_weights and config.weighting != 'auto':
    raise ValueError(
      f'--pooling={config.pooling} uses no client weights: remove '
      f'--weighting={config.weighting}.'
    )
  rank = max((part.rank for part in plan.parts), default=0)
  num_clients = config.clients_per_round or config.num_clients
  rule.check(num_clients, rank, layout.size('loc'))


def _with_needed(plan, stages, of_run):
  """Adds the stages that client parts need, at the front."""
  selection.check_unique('--server_step and --refine', stages)
  by_name = {stage.name: stage for stage in stages}
  first = {
    name: by_name.get(name) or stage.make(plan.config.context(**of_run))
    for name, stage in plan.config.selection.needed.items()
  }
  rest = [stage for stage in stages if stage.name not in first]
  return (*first.values(), *rest)


def _check_start(chain):
  for stage in chain:
    if stage.statistics or stage.has_slot:
      raise ValueError(
        f'--start: {stage.name} needs the updates of rounds: select it in '
        '--server_step or --refine.'
      )


def _check_predictor(config, stages):
  makers = [stage for stage in stages if stage.predictors]
  if len(makers) > 1:
    names = ' and '.join(stage.name for stage in makers)
    raise ValueError(
      f'--server_step and --refine: {names} would each create groups of '
      'models: select one of them.'
    )
  made = [name for stage in makers for name in stage.predictors]
  if not config.predictor or config.predictor in made:
    return
  if not made:
    raise ValueError(
      f'--predictor={config.predictor}: no selected stage creates groups of '
      'models: set --refine=ensemble, or list the groups of your stage in its '
      'attribute `predictors`.'
    )
  server.groups_of('predictor', config.predictor, made)
