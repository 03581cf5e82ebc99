"""The client side of a method: the plan of local training."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import functools
import math
from typing import Any

import numpy as np

from bfl_tf import models, training, weights
from bfl_tf.clients import attacks as attacks_lib
from bfl_tf.config import selection
from bfl_tf.config.config import Config
from bfl_tf.data import Dataset
from bfl_tf.declare import user_code
from bfl_tf.federation import compatibility
from bfl_tf.server import pooling
from bfl_tf.startup import tf, tf_keras


@dataclasses.dataclass(frozen=True)
class Plan:
  """Plan of local training."""

  config: Config
  inference: training.Inference
  parts: tuple
  optimizer: Any
  schedule: Any
  attacks: tuple

  @classmethod
  def of(cls, config: Config) -> Plan:
    """Makes the plan; a ValueError names the flag and the fix."""
    variant: Any = config.make('variant', object)
    optimizer = config.make('client_optimizer', training.Optimizer)
    settings = [
      made
      for made in (variant, optimizer)
      if isinstance(made, training.Objective)
    ]
    weighting = config.make('weighting', pooling.Weighting)
    parts = config.chain(
      'client_parts',
      training.Part,
      prior_precision=settings[0].prior_scale ** -2 if settings else 0.0,
      client_optimizer=optimizer,
      weighting=weighting,
    )
    inference = training.resolve(
      variant,
      optimizer,
      [
        ('variant', config.variant, variant),
        ('client_optimizer', config.client_optimizer, optimizer),
        *(('client_parts', part.name, part) for part in parts),
      ],
      config.predict_with,
    )
    plan = cls(
      config=config,
      inference=inference,
      parts=parts,
      optimizer=optimizer,
      schedule=_schedule(config),
      attacks=config.chain('attack', attacks_lib.Attack),
    )
    compatibility.check_plan(
      plan,
      variant,
      weighting,
      config.make('pooling', pooling.Rule),
    )
    return plan

  @property
  def every_part(self) -> tuple:
    """All client parts, including those of second trainings."""
    seconds = (part.second_training() for part in self.parts)
    return (*self.parts, *(part for part in seconds if part))

  @property
  def objective(self) -> training.Objective:
    """The prior and the weight of the KL term."""
    return self.inference.objective

  def flag(self, name: str) -> str:
    """Returns the flag of a field of the objective, with its value."""
    return f'--{self.inference.owner}.{name}={getattr(self.objective, name)}'

  @property
  def uses_broadcast_prior(self) -> bool:
    """Whether the clients' prior depends on the broadcast posterior."""
    by_part = any(part.provides_prior for part in self.parts)
    return self.objective.update_prior or by_part

  def for_one_site(self) -> Plan:
    """Returns the plan for a personalized model of one site.

    The prior is that of a client part, or else the broadcast posterior. The KL
    term is divided by the site's own number of examples. Attacks are left out,
    and parts that provide neither a prior nor a posterior over all weights.
    """
    alone = (part.for_one_site() for part in self.parts)
    parts = tuple(part for part in alone if part is not None)
    has_prior = any(part.provides_prior for part in parts)
    inference = self.inference.with_objective(
      kl_examples='own',
      annealing_rounds=0,
      # `tied` needs the fixed prior.
      kl_reduction=self.objective.kl_reduction.replace('tied', 'sum'),
      update_prior=self.inference.has_prior and not has_prior,
    )
    optimizer: Any = self.optimizer
    if isinstance(inference, training.OptimizerInference):
      optimizer = inference.objective  # It is also the optimizer.
      inference = dataclasses.replace(inference, optimizer=optimizer)
    return dataclasses.replace(
      self, inference=inference, optimizer=optimizer, parts=parts, attacks=()
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
    """Returns one worker per device, compiled for local training.

    Args:
      built: Cache of workers, by data set and local training.
    """
    config, shape = self.config, dataset.input_shape
    if config.mixed_precision and not training.has_mixed_precision():
      raise ValueError(
        '--mixed_precision needs a processor with avx512_bf16 or amx_bf16, or '
        'a GPU with compute capability 8.0: remove the flag.'
      )
    self._check_images(shape)
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
      step_decay=config.step_decay,
      epoch_decay=config.epoch_decay,
      epoch_decay_every=config.epoch_decay_every,
      inference=self.inference.compiled(),
      parts=self.parts,
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

  def _check_images(self, shape):
    """Rejects augmentation for examples that are not suitable images."""
    config = self.config
    if config.augment and len(shape) != 3:
      raise ValueError(
        f'--augment needs images; {config.dataset} has examples of shape '
        f'{shape}.'
      )
    mirrored = config.augment and config.augment_border == 'reflect'
    if mirrored and config.augment_padding >= min(shape[:2]):
      raise ValueError(
        f'--augment_padding={config.augment_padding} is too large for images '
        f'of shape {shape}: lower it.'
      )

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

  def check_trainings(self, sizes: Sequence[int]) -> None:
    """Checks parts with the shortest and longest training of each client."""
    steps, epochs = self.config.local_steps, _possible_epochs(self.config)
    for part in self.every_part:
      for client, size in enumerate(sizes if part.has('check') else ()):
        batches = math.ceil(size / self.config.batch_size)
        try:
          for number in epochs:
            part.check(steps or number * batches, size)
        except ValueError as error:
          raise ValueError(
            f'--client_parts={part.name}, client {client}: {error}'
          ) from error

  def with_layout(self, layout: weights.Layout) -> Plan:
    """Returns the plan with parts for a model with these tensor shapes."""
    parts = tuple(part.with_layout(layout) for part in self.parts)
    return dataclasses.replace(self, parts=parts)

  def fresh_memory(self, model: weights.Weights) -> dict[str, Any]:
    """Returns a client's memory before its first round, by part name."""
    memory = {}
    for part in self.parts:
      if part.has('init_memory'):
        what = f'--client_parts={part.name}'
        kept = memory[part.name] = part.init_memory(model)
        for leaf in tf.nest.flatten(kept):
          if not isinstance(leaf, np.ndarray | np.generic):
            raise ValueError(
              f'{what}: init_memory must return NumPy arrays, got '
              f'{type(leaf).__name__}.'
            )
    return memory


def _schedule(config) -> Any:
  """Makes the schedule and computes the rates of the first and last round."""
  schedule: Any = config.make('learning_rate_schedule', object)
  start, num_rounds = config.client_learning_rate, config.num_rounds
  for index in (0, num_rounds - 1):
    rate = user_code.attempt(schedule, start, index, num_rounds)
    if not (isinstance(rate, float | int) and 0 <= rate < math.inf):
      raise ValueError(
        f'--learning_rate_schedule={config.learning_rate_schedule} must return '
        f'a finite number, got {rate!r} for round {index + 1} of {num_rounds}.'
      )
  return schedule


def _possible_epochs(config) -> list[int]:
  """Returns the minimum and maximum number of local epochs of a client."""
  early = config.early_local_epochs
  if early and config.early_rounds >= config.num_rounds:
    return [early]
  possible = [config.min_local_epochs or config.local_epochs]
  possible += [config.local_epochs, early or config.local_epochs]
  return sorted({min(possible), max(possible)})
