"""From a config to the pieces that a run is made of.

Everything that can be wrong with a config shows here, before anything is
trained or written.
"""

from collections.abc import Callable, Mapping
import dataclasses
import functools
import inspect
import types
from typing import Any

import numpy as np

from bfl_tf import (
  clients,
  datasets,
  models,
  partitions,
  pooling,
  registry,
  server,
  training,
)
from bfl_tf import weights as weights_lib
from bfl_tf.federation import config as config_lib


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
    dataset = _dataset(config, built)
    partition, held = _partition(config, dataset)
    workers = _workers(config, dataset, parts, built)
    start, step, refine = (
      _chain(
        flag, server.STAGES, config, _resources(config, dataset, held, built)
      )
      for flag in ('start', 'server_step', 'refine')
    )
    stages = _with_needed(parts, step + refine, config)
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
    model = _model_builder(self.config, self.dataset)()
    tensors = weights_lib.read(weights_lib.Variables.of(model))
    return weights_lib.Weights(*map(np.asarray, tensors))


def configured(
  thing: Any,
  config: config_lib.Config,
  resources: Mapping[str, Callable[[], Any]] = types.MappingProxyType({}),
) -> functools.partial:
  """Binds those of a thing's arguments that config or resources name.

  Args:
    thing: a class or a function.
    config: its fields are bound by their names.
    resources: functions that make what only some things need, by name.
  """
  names = inspect.signature(thing).parameters
  fields = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
  bound = {name: fields[name] for name in names if name in fields}
  made = {name: make() for name, make in resources.items() if name in names}
  return functools.partial(thing, **bound | made)


def _resources(config, dataset, held, built):
  """What stages that train ask for; made only if one does."""
  # The server has no broadcast to take as a prior, no parts, a constant rate.
  alone = dataclasses.replace(
    config, update_prior=False, step_decay=1.0, epoch_decay=1.0
  )
  deterministic = config.variant == 'deterministic'
  return {
    'server_workers': lambda: _workers(alone, dataset, (), built),
    'server_indices': lambda: held,
    'validation': lambda: dataset.validation,
    'num_mc_samples': lambda: 1 if deterministic else config.num_mc_samples,
  }


def _make(flag, table, config):
  thing = registry.resolve(flag, getattr(config, flag), table)
  return configured(thing, config)()


def _chain(flag, table, config, resources=types.MappingProxyType({})):
  chain = tuple(
    configured(registry.resolve(flag, name, table), config, resources)()
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
      first[part.needs] = by_name.get(part.needs) or configured(ours, config)()
  rest = [stage for stage in stages if stage.name not in first]
  return (*first.values(), *rest)


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


def _partition(config, dataset):
  labels = dataset.train.y
  held, rest = partitions.hold_out(
    labels, num_examples=config.num_server_examples, seed=config.seed
  )
  if config.num_clients > len(rest):
    raise ValueError(
      f'--num_clients={config.num_clients} exceeds the {len(rest)} training '
      'examples that clients share.'
    )
  split = registry.resolve('partition', config.partition, partitions.PARTITIONS)
  parts = configured(split, config)(labels[rest])
  return [rest[part].astype(np.int32) for part in parts], held


def _dataset(config, built):
  arguments = {
    'train_split': config.train_split,
    'test_split': config.test_split,
    'validation_split': config.validation_split,
    'seed': config.seed if config.validation_split else 0,
  }
  key = ('dataset', config.dataset, *arguments.values())
  if key not in built:
    built[key] = datasets.load(config.dataset, **arguments)
  return built[key]


def _workers(config, dataset, parts, built):
  if config.augment and len(dataset.input_shape) != 3:
    raise ValueError(
      f'--augment needs images; {config.dataset} has examples of shape '
      f'{dataset.input_shape}.'
    )
  settings = configured(training.Settings, config).keywords | {
    'optimizer': _optimizer(config),
    'weight_decay': config.client_weight_decay,
    'parts': parts,
  }
  build_model = _model_builder(config, dataset)
  model = build_model.keywords | {'seed': 0, 'name': config.model}
  key = (
    'workers', id(dataset), config.num_workers, config.distribution,
    tuple(sorted(settings.items())), tuple(sorted(model.items())),
  )  # fmt: skip
  if key not in built:
    data = training.Data(
      dataset.train.x, dataset.train.y, dataset.mean, dataset.std
    )
    built[key] = [
      training.Worker(
        strategy, build_model, data, training.Settings(**settings)
      )
      for strategy in training.strategies(
        config.num_workers, config.distribution
      )
    ]
  return built[key]


def _check_parts(config, parts):
  plain = config.client_optimizer == 'sgd' and not config.client_momentum
  for part in parts:
    if getattr(part, 'plain_sgd', False) and not plain:
      raise ValueError(
        f'--client_parts={part.name} needs --client_optimizer=sgd with '
        '--client_momentum=0.'
      )


def _optimizer(config):
  if config.client_optimizer == 'sgd':
    return training.SGD(config.client_momentum)
  if config.client_optimizer != 'adam':
    raise ValueError(
      f'--client_optimizer={config.client_optimizer} is unknown. Choose sgd or '
      'adam.'
    )
  if config.client_momentum:
    raise ValueError('--client_momentum belongs to --client_optimizer=sgd.')
  return training.Adam()


def _model_builder(config, dataset):
  return functools.partial(
    configured(models.build, config),
    config.model,
    input_shape=dataset.input_shape,
    num_classes=dataset.num_classes,
  )
