"""The plan of a run: all components that its flags select."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
import dataclasses
import functools
import itertools
import math
from typing import Any

import numpy as np

from bfl_tf import models, parts, server, training, weights
from bfl_tf.clients import attacks as attacks_lib
from bfl_tf.config import selection
from bfl_tf.config.config import Config
from bfl_tf.data import Dataset
from bfl_tf.declare import component, user_code
from bfl_tf.federation import facts
from bfl_tf.server import pooling
from bfl_tf.startup import tf_keras


@dataclasses.dataclass(frozen=True)
class Plan:
  """The method of a run: what clients and server do in each round.

  Attributes:
    servers: Other server parts, in order: those of client parts, then
      `--server_parts`. Recalibration of batch normalization precedes the part
      that makes groups.
    layout: Layout of the model; None before the data are read.
  """

  config: Config
  variant: Any
  inference: training.Inference
  locals: tuple
  optimizer: Any
  schedule: Any
  attacks: tuple
  weighting: Any
  pool: Any
  servers: tuple
  start: tuple
  privacy: Any
  layout: weights.Layout | None = None
  is_of_one_site: bool = False

  @classmethod
  def of(cls, config: Config) -> Plan:
    """Makes the plan; a ValueError names the flag and the fix."""
    variant: Any = config.make('variant', object)
    optimizer = config.make('client_optimizer', training.Optimizer)
    objectives = [
      each
      for each in (variant, optimizer)
      if isinstance(each, training.Objective)
    ]
    weighting = config.make('weighting', pooling.Weighting)
    run = parts.RunFacts(
      num_clients=config.num_clients,
      clients_per_round=config.clients_per_round,
      prior_precision=objectives[0].prior_scale ** -2 if objectives else 0.0,
      min_scale=config.min_scale,
      optimizer=optimizer,
      weighting=weighting,
    )
    of_clients, of_server, start = (
      tuple(part.with_run(run) for part in config.chain(flag, base))
      for flag, base in (
        ('client_parts', parts.Local),
        ('server_parts', parts.Server),
        ('start', parts.Server),
      )
    )
    inference = training.resolve(
      variant,
      optimizer,
      [
        ('variant', config.variant, variant),
        ('client_optimizer', config.client_optimizer, optimizer),
        *(('client_parts', part.name, part) for part in of_clients),
      ],
      config.predict_with,
    )
    pool = config.make('pooling', parts.Pool).with_run(run)
    plan = cls(
      config=config,
      variant=variant,
      inference=inference,
      locals=of_clients,
      optimizer=optimizer,
      schedule=_schedule(config),
      attacks=config.chain('attack', attacks_lib.Attack),
      weighting=weighting,
      pool=_pool(config, of_clients, pool),
      servers=_servers(config, of_clients, of_server),
      start=start,
      privacy=config.privacy_mechanism,
    )
    facts.check(facts.Facts(plan))
    return plan

  @property
  def objective(self) -> training.Objective:
    """The prior and the weight of the KL term."""
    return self.inference.objective

  @property
  def flag_of_pool(self) -> str:
    """The flag that selects the pooling rule, with its value."""
    is_part = isinstance(self.pool, parts.Local)
    return (
      f'--client_parts={self.pool.name}'
      if is_part
      else f'--pooling={self.config.pooling}'
    )

  def flags_of_parts(self) -> Iterator[tuple[str, Any]]:
    """Yields the flag of each part, and the part."""
    for name, part in zip(self.config.client_parts, self.locals):
      yield f'--client_parts={name}', part
    if self.pool not in self.locals:
      yield self.flag_of_pool, self.pool
    for part in self.servers:
      if isinstance(part, server.Recalibrate):
        yield '--batch_norm=recalibrate', part
      elif part not in self.locals:
        yield f'--server_parts={part.name}', part
    for part in self.start:
      yield f'--start={part.name}', part
    yield f'--privacy={self.config.privacy}', self.privacy

  def flag(self, name: str) -> str:
    """Returns the flag of a field of the objective, with its value."""
    return f'--{self.inference.owner}.{name}={getattr(self.objective, name)}'

  def for_one_site(self) -> Plan:
    """Returns the plan for a personalized model of one site.

    The prior is that of a client part, or else the broadcast posterior. The KL
    term is divided by the site's own number of examples. Attacks are left out,
    and parts that provide neither a prior nor a posterior over all weights.
    """
    own = tuple(p for p in self.locals if p.has('prior') or p.fits_posterior)
    has_prior = any(part.has('prior') for part in own)
    changes: dict[str, Any] = {
      'kl_examples': 'own',
      'update_prior': self.inference.has_prior and not has_prior,
    }
    if isinstance(self.objective, training.LayerObjective):
      # `tied` needs the fixed prior.
      reduction = self.objective.kl_reduction.replace('tied', 'sum')
      changes |= {'annealing_rounds': 0, 'kl_reduction': reduction}
    inference = self.inference.with_objective(**changes)
    optimizer: Any = self.optimizer
    if isinstance(inference, training.OptimizerInference):
      optimizer = inference.objective  # It is also the optimizer.
      inference = dataclasses.replace(inference, optimizer=optimizer)
    return dataclasses.replace(
      self,
      inference=inference,
      optimizer=optimizer,
      locals=own,
      attacks=(),
      is_of_one_site=True,
    )

  def attacks_of(self, client: int) -> tuple:
    """Returns the attacks of a client; empty for an honest client."""
    config = self.config
    return tuple(
      attack
      for attack in self.attacks
      if client
      in attacks_lib.malicious_clients(
        config.seed_of_data, config.num_clients, attack.fraction
      )
    )

  def likelihood(
    self, label_moments: tuple[float, float]
  ) -> training.Likelihood:
    """Returns the likelihood of labels with these moments."""
    return self.config.make(
      'likelihood', training.Likelihood, label_moments=label_moments
    )

  def network(
    self, input_shape: tuple[int, ...], num_classes: int
  ) -> functools.partial[tf_keras.Model]:
    """Returns the function that builds the model with its initial weights."""
    config = self.config
    # The number of outputs does not depend on the moments of the labels.
    likelihood = self.likelihood((0.0, 1.0))
    of_run = {
      'variant': config.variant,
      'input_shape': input_shape,
      'num_classes': likelihood.num_outputs(num_classes),
      'kernel_initializer': config.kernel_initializer,
    }
    of_variant = config.selection.of('variant').values
    names = selection.OF_VARIANTS
    arguments = {
      **{k: v for k, v in of_variant.items() if k in names},
      **config.selection.of('model').arguments(config.context(**of_run)),
      **of_run,
      'num_constants': likelihood.num_constants(),
      'mixed_precision': config.mixed_precision,
      'seed': config.seed,
    }
    return functools.partial(models.build, config.model, **arguments)

  def workers(
    self, dataset: Dataset, built: dict[Any, Any]
  ) -> list[training.Worker]:
    """Returns one worker per device, compiled for local training."""
    config, shape = self.config, dataset.input_shape
    if config.mixed_precision and not training.has_mixed_precision():
      raise ValueError(
        '--mixed_precision needs a processor with avx512_bf16 or amx_bf16, or '
        'a GPU with compute capability 8.0: remove the flag.'
      )
    if config.augment and len(shape) != 3:
      raise ValueError(
        f'--augment needs images; {config.dataset} has examples of shape '
        f'{shape}.'
      )
    network = self.network(shape, dataset.num_classes)
    training_config = training.TrainingConfig(
      optimizer=self.optimizer,
      batch_size=config.batch_size,
      max_gradient_norm=config.max_gradient_norm,
      weight_decay=config.client_weight_decay,
      decay_biases=config.decay_biases,
      augment=config.augment,
      augment_padding=config.augment_padding,
      augment_border=config.augment_border,
      inference=self.inference.compiled(),
      parts=self.locals,
      for_one_site=self.is_of_one_site,
      likelihood=self.likelihood(dataset.label_moments),
      jit_compile=config.jit_compile and not config.debug,
      is_eager=config.debug,
    )
    devices = (
      1 if config.debug else config.num_workers,
      config.distribution,
      config.clients_per_device,
    )
    # Without the seed, because each task has its own weights.
    built_by = sorted(
      (k, v) for k, v in network.keywords.items() if k != 'seed'
    )
    key = (
      'workers',
      dataset,
      config.model,
      *built_by,
      *devices,
      training_config,
    )
    if key not in built:
      train = dataset.train
      data = training.Data(train.x, train.y, dataset.mean, dataset.std)
      built[key] = [
        training.Worker(strategy, network, data, training_config)
        for strategy in training.strategies(*devices)
      ]
    self._check_network(built[key][0].layout, network)
    return built[key]

  def _check_network(self, layout, network):
    """Rejects user-supplied networks that would fail silently."""
    config = self.config
    if ':' not in config.model:
      return
    models.check_logits(config.model, network())
    if self.inference.owner and not layout.size('loc'):
      raise ValueError(
        f'--variant={config.variant}: --model={config.model} has no '
        'variational layer: use the layers of bfl_tf.models.layers, or '
        '--variant=deterministic.'
      )

  def trainings(
    self, partition: Sequence[np.ndarray]
  ) -> list[tuple[int, int, int]]:
    """Returns client, steps and examples of the extreme trainings."""
    steps = self.config.local_steps
    epochs = {*itertools.chain(*_possible_epochs(self.config, self.schedule))}
    return [
      (client, steps or number * math.ceil(len(own) / self.config.batch_size),
       len(own))
      for client, own in enumerate(partition)
      for number in sorted({min(epochs), max(epochs)})
    ]  # fmt: skip

  def with_layout(self, layout: weights.Layout) -> Plan:
    """Returns the plan with parts for a model with these tensor shapes."""

    def placed(part):
      return part.with_run(part.run._replace(layout=layout))

    return dataclasses.replace(
      self,
      layout=layout,
      locals=tuple(map(placed, self.locals)),
      pool=placed(self.pool),
      servers=tuple(map(placed, self.servers)),
      start=tuple(map(placed, self.start)),
    )

  def fresh_memory(
    self, model: weights.Weights, exclude: Container[str] = ()
  ) -> dict[str, Any]:
    """Returns a client's memory before its first round, by part name.

    Parts in `exclude` are left out: they have a memory of an earlier round.
    """
    return {
      part.name: parts.numpy(part.memory(model))
      for part in self.locals
      if part.has('memory') and part.name not in exclude
    }

  def fresh_slots(self, model: weights.Weights) -> dict[str, Any]:
    """Returns the slots before the first round, by part."""
    return {
      part.name: part.slot(model)
      for part in (self.pool, *self.servers)
      if part.has('slot')
    }

  def shared(self, slots: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what client parts receive from their server halves, by name."""
    return {
      part.name: part.shared(slots[part.name])
      for part in self.locals
      if isinstance(part, parts.Server) and part.has('shared')
    }

  @functools.cached_property
  def traced(self) -> training.TraceResult:
    """The trace of the client parts, with the shapes of an update.

    Memories and slots keep their initial shapes.
    """
    assert self.layout is not None
    model = self.layout.standard()
    # Slots of other parts may be too large, which their `check` finds later.
    slots = {p.name: p.slot(model) for p in self.locals if p.has('slot')}
    return training.trace(
      self.locals,
      self.layout,
      self.shared(slots),
      self.fresh_memory(model),
      checks_hooks=not self.config.debug,
      rank=self.inference.factor_rank(model.loc.size),
    )

  @property
  def result_spec(self) -> training.Result:
    """`tf.TensorSpec`s of the result of a client's training."""
    return self.traced.result


def _pool(config, of_clients, pool):
  """Returns the pooling rule of a client part, or that of `--pooling`."""
  own = [part for part in of_clients if isinstance(part, parts.Pool)]
  if len(own) > 1:
    names = ' and '.join(part.name for part in own)
    raise ValueError(
      f'--client_parts: {names} each have a pooling rule: choose one.'
    )
  if own and config.pooling != 'auto':
    raise ValueError(
      f'--client_parts={own[0].name} has its own pooling rule, and '
      f'--pooling={config.pooling} is another one: set --pooling=auto.'
    )
  return own[0] if own else pool


def _servers(config, of_clients, of_server):
  """Returns the server parts after the pooling rule, in order."""
  if config.batch_norm == 'recalibrate':
    makes = [bool(part.group_names) for part in of_server]
    place = makes.index(True) if any(makes) else len(makes)
    between = (server.Recalibrate(),)
    of_server = (*of_server[:place], *between, *of_server[place:])
  own = [p for p in of_clients if isinstance(p, parts.Server)]
  first = tuple(part for part in own if not isinstance(part, parts.Pool))
  selection.check_unique(
    '--client_parts and --server_parts', (*own, *of_server)
  )
  return (*first, *of_server)


def _schedule(config) -> training.Schedule:
  """Makes the schedule, and checks its rates and numbers of epochs."""
  flag = f'--schedule={config.schedule}'
  schedule = config.make('schedule', training.Schedule)
  start, num_rounds = config.client_learning_rate, config.num_rounds
  for index in (0, num_rounds - 1):
    rate = user_code.attempt(schedule.rate, start, index, num_rounds)
    if not (isinstance(rate, float | int) and 0 <= rate < math.inf):
      raise ValueError(
        f'{flag} must return a finite number, got {rate!r} for round '
        f'{index + 1} of {num_rounds}.'
      )
  most = config.local_epochs
  for epochs in user_code.call(flag, _possible_epochs, config, schedule):
    if not 1 <= epochs[0] <= epochs[1]:
      raise ValueError(
        f'{flag}: {epochs[0]} to {epochs[1]} local epochs is no range: its '
        f'minimum must not exceed --local_epochs={most}.'
      )
    if config.local_steps and epochs != (most, most):
      raise ValueError(
        f'{flag} sets the number of local epochs, and --local_steps='
        f'{config.local_steps} replaces it: remove one.'
      )
  return schedule


def _possible_epochs(config, schedule) -> set[tuple[int, int]]:
  """Returns the minima and maxima of the numbers of local epochs."""
  varies = component.overrides(schedule, training.Schedule, 'epochs')
  rounds = range(config.num_rounds if varies else 1)
  return {schedule.epochs(config.local_epochs, index) for index in rounds}
