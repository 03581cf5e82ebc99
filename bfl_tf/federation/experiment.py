"""From a config to the pieces that a run is made of.

Everything that can be wrong with a config shows here, before anything is
trained or written.
"""

import dataclasses
import types
from typing import Any

import numpy as np

from bfl_tf import (
  clients,
  datasets,
  pooling,
  registry,
  server,
  training,
)
from bfl_tf import weights as weights_lib
from bfl_tf.federation import config as config_lib
from bfl_tf.federation import pieces


@dataclasses.dataclass(frozen=True)
class Experiment:
  """The pieces of a run.

  Attributes:
    config: what they were made from.
    dataset: real examples, in memory once.
    partition: int32 index arrays into `dataset.train`, one a client.
    server_indices: int32, examples that clients do not see.
    workers: `training.Worker`s, one a device.
    rule: of `pooling`.
    weighting: of `pooling`.
    stages: the chain of server stages: what parts need, `server_step`,
      `refine`.
    start: the chain of server stages before the first round.
    parts: the chain of client parts.
    schedule: the learning rate over rounds.
  """

  config: config_lib.Config
  dataset: datasets.Dataset
  partition: list[np.ndarray]
  server_indices: np.ndarray
  workers: list[training.Worker]
  rule: Any
  weighting: Any
  stages: tuple
  start: tuple
  parts: tuple
  schedule: Any

  @classmethod
  def build(
    cls, config: config_lib.Config, built: dict[Any, Any] | None = None
  ) -> 'Experiment':
    """Makes the pieces.

    Args:
      config: what to make.
      built: data sets and compiled workers of earlier experiments, to be used
        again where they fit and added to.

    Raises:
      ValueError: the message names the flag and the fix.
    """
    built = {} if built is None else built
    parts = _chain('client_parts', clients.PARTS, config)
    _check_parts(config, parts)
    rule = _make('pooling', pooling.RULES, config)
    weighting = _make('weighting', pooling.WEIGHTINGS, config)
    _check_pooling(config, rule)
    schedule = _make('learning_rate_schedule', training.SCHEDULES, config)
    dataset = pieces.dataset(config, built)
    partition, held = pieces.partition(config, dataset)
    workers = pieces.workers(config, dataset, parts, built)
    resources = pieces.resources(config, dataset, held, workers, built)
    start, step, refine = (
      _chain(flag, server.STAGES, config, resources)
      for flag in ('start', 'server_step', 'refine')
    )
    _check_start(start)
    stages = _with_needed(
      parts, step + _recalibration(config, resources) + refine, config
    )
    _check_predictor(config, stages)
    return cls(
      config=config,
      dataset=dataset,
      partition=partition,
      server_indices=held,
      workers=workers,
      rule=rule,
      weighting=weighting,
      stages=stages,
      start=start,
      parts=parts,
      schedule=schedule,
    )

  def initial_weights(self) -> weights_lib.Weights:
    """The weights before the first round; they depend on the seed alone."""
    model = pieces.model_builder(self.config, self.dataset)()
    tensors = weights_lib.read(weights_lib.Variables.of(model))
    return weights_lib.Weights(*map(np.asarray, tensors))


def _make(flag, table, config):
  thing = registry.resolve(flag, getattr(config, flag), table)
  return pieces.configured(thing, config)()


def _chain(flag, table, config, resources=types.MappingProxyType({})):
  chain = tuple(
    pieces.configured(registry.resolve(flag, name, table), config, resources)()
    for name in getattr(config, flag)
  )
  _check_unique(f'--{flag}', chain)
  return chain


def _with_needed(parts, stages, config):
  """Puts the stages that parts need first."""
  _check_unique('--server_step and --refine', stages)
  by_name = {stage.name: stage for stage in stages}
  first = {}
  for part in parts:
    if part.needs and part.needs not in {**by_name, **server.STAGES}:
      raise ValueError(
        f'--client_parts: {part.name} needs the server stage {part.needs}: '
        'name it in --server_step.'
      )
    if part.needs:
      ours = server.STAGES.get(part.needs)
      first[part.needs] = (
        by_name.get(part.needs) or pieces.configured(ours, config)()
      )
  rest = [stage for stage in stages if stage.name not in first]
  return (*first.values(), *rest)


def _recalibration(config, resources):
  """The stage that `--batch_norm` adds between step and refine."""
  registry.check_choice(
    'batch_norm', config.batch_norm, ('average', 'recalibrate')
  )
  if config.batch_norm == 'average':
    return ()
  return (pieces.configured(server.Recalibrate, config, resources)(),)


def _check_start(chain):
  for stage in chain:
    if stage.statistics:
      raise ValueError(
        f'--start: {stage.name} needs the updates of a round: name it in '
        '--server_step or --refine.'
      )


def _check_predictor(config, stages):
  makers = [stage for stage in stages if getattr(stage, 'predictors', ())]
  if len(makers) > 1:
    names = ' and '.join(stage.name for stage in makers)
    raise ValueError(
      f'--server_step and --refine: {names} would each make groups to score: '
      'name one of them.'
    )
  made = [name for stage in makers for name in stage.predictors]
  if not config.predictor or config.predictor in made:
    return
  united = config.predictor.split('+')
  groups = [name for name in made if name in server.GROUPS]
  if set(united) - set(groups) or len(set(united)) < len(united):
    raise ValueError(
      f'--predictor={config.predictor} must be one of {", ".join(made)} that '
      f'the stages make, or some of {", ".join(groups)} joined by +: see '
      '--refine=ensemble and --ensemble.'
      if made
      else f'--predictor={config.predictor}: no stage makes a group to score; '
      'set --refine=ensemble.'
    )


def _check_unique(flags, chain):
  names = [member.name for member in chain]
  if len(set(names)) < len(names):
    raise ValueError(f'{flags} name a member twice: {",".join(names)}.')


def _check_pooling(config, rule):
  if rule.needs_prior and not config.update_prior:
    raise ValueError(
      f'--pooling={config.pooling} divides out the broadcast posterior, so '
      'clients must take it as their prior: set --update_prior.'
    )
  if not rule.takes_weights and config.weighting not in ('size', 'equal'):
    raise ValueError(
      f'--pooling={config.pooling} takes no client weights: leave '
      f'--weighting={config.weighting} out.'
    )
  if config.variant != 'flipout' and config.pooling in set(pooling.RULES) - {
    'nwa'
  }:
    raise ValueError(
      f'--pooling={config.pooling} pools posteriors: it needs '
      f'--variant=flipout, not {config.variant}, which takes --pooling=nwa.'
    )


def _check_parts(config, parts):
  plain = config.client_optimizer == 'sgd' and not config.client_momentum
  for part in parts:
    if getattr(part, 'plain_sgd', False) and not plain:
      raise ValueError(
        f'--client_parts={part.name} needs --client_optimizer=sgd with '
        '--client_momentum=0.'
      )
