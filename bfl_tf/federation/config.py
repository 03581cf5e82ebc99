"""All that defines a run, flat: the only home of a default.

Flags are derived from these fields, a preset is a file of flags. A field that
belongs to a rule, a stage or a part takes its default from there.
"""

import dataclasses
import math
from typing import Any

from bfl_tf import clients, models, server, training
from bfl_tf import pooling as pooling_lib
from bfl_tf.pooling import rules, weightings
from bfl_tf.training import schedules


def _option(default: Any, doc: str, **bounds: float) -> Any:
  """A field with its help text and the bounds that a value must keep.

  Bounds: `least` (inclusive), `above` (exclusive), `below` (exclusive).
  """
  return dataclasses.field(
    default=default, metadata={'help': doc, 'bounds': bounds}
  )


@dataclasses.dataclass(frozen=True)
class Config:
  """The settings of a run; each is a flag of the same name.

  Raises:
    ValueError: a value out of its bounds; the message names the flag.
  """

  # Data.
  dataset: str = _option(
    'digits',
    'digits, breast_cancer, wine, swiss_roll, a TFDS name, tiny_imagenet, a '
    'path to .npz, or package.module:function.',
  )
  train_split: str = _option('train', "TFDS slice: 'train[:10000]'.")
  test_split: str = _option('test', 'TFDS slice.')
  validation_split: float = _option(
    0.0,
    'Fraction of the training examples kept for validation.',
    least=0,
    below=1,
  )
  augment: bool = _option(False, 'Pad, random crop and flip on clients.')
  augment_padding: int = _option(4, 'Zeros a side, of augment.', least=0)

  # Clients' data.
  partition: str = _option(
    'iid', 'iid, shards, dirichlet, dirichlet_equal, step, majority.'
  )
  alpha: float = _option(0.5, 'Concentration of a Dirichlet split.', above=0)
  classes_per_client: int = _option(
    2, 'Classes a client in shards, major ones in step.', least=1
  )
  minor_examples: int = _option(
    10, 'Examples a client of each minor class in step.', least=0
  )
  major_fraction: float = _option(
    0.8, "Of a client's examples in majority.", above=0, below=1
  )
  step_deal: str = _option('random', "Of step: 'random' or 'ring'.")
  min_examples: int = _option(10, "Least examples in 'dirichlet'.", least=1)
  num_clients: int = _option(10, 'Clients in all.', least=1)
  clients_per_round: int = _option(
    0, 'Clients drawn each round; 0 for all.', least=0
  )
  min_clients: int = _option(
    1, 'Fewer accepted updates than this stop the run.', least=1
  )
  num_server_examples: int = _option(
    0, 'Class-balanced examples held back for the server.', least=0
  )
  server_dataset: str = _option(
    '', "Unlabeled examples of another data set in their place, as 'dataset'."
  )
  server_split: str = _option('train', 'TFDS slice of server_dataset.')
  resize: bool = _option(False, "Fit server_dataset's images to the clients'.")
  num_unlabeled_examples: int = _option(
    0, "Of the server's examples, how many it uses; 0 for all.", least=0
  )

  # Model.
  model: str = _option(
    'mlp',
    'logistic, mlp, lenet5, convnet, resnet20, mobilenetv2, or '
    'package.module:f.',
  )
  variant: str = _option('flipout', 'deterministic, mc_dropout or flipout.')
  hidden_units: tuple[int, ...] = _option(
    models.HIDDEN_UNITS, 'Hidden layers of the mlp.', least=1
  )
  extra_layers: int = _option(0, 'Convolutions that convnet has more.', least=0)
  normalization: str = _option(
    'batch', 'Of a ResNet and mobilenetv2: batch, group, none.'
  )
  dropout_rate: float = _option(0.2, 'Of mc_dropout.', least=0, below=1)
  initial_scale: float = _option(
    0.05, 'Standard deviation that variational weights start with.', above=0
  )
  kernel_initializer: str = _option('he_normal', 'he_normal, glorot_uniform.')
  prior_scale: float = _option(
    10.0, 'Standard deviation of the prior N(0, prior_scale^2).', above=0
  )
  update_prior: bool = _option(
    False, 'Take the broadcast posterior as the prior each round.'
  )

  # Local training.
  num_rounds: int = _option(20, 'Rounds.', least=1)
  local_epochs: int = _option(1, 'Epochs a client trains a round.', least=1)
  min_local_epochs: int = _option(
    0, 'If positive, epochs are drawn from here to local_epochs.', least=0
  )
  early_local_epochs: int = _option(
    0, 'If positive, epochs of the first early_rounds rounds.', least=0
  )
  early_rounds: int = _option(5, 'See early_local_epochs.', least=1)
  batch_size: int = _option(32, 'Examples a step.', least=1)
  client_optimizer: str = _option(
    'adam', f'{", ".join(training.OPTIMIZERS)}; fresh each round.'
  )
  client_learning_rate: float = _option(1e-3, 'At first.', above=0)
  client_momentum: float = _option(0.0, 'Of sgd.', least=0, below=1)
  client_weight_decay: float = _option(
    0.0, 'Added to the gradient before momentum.', least=0
  )
  decay_biases: bool = _option(
    True, "Weight decay on biases and normalization's gamma and beta too."
  )
  learning_rate_schedule: str = _option(
    'constant', 'Over rounds: constant, steps, exponential.'
  )
  decay_at: tuple[float, ...] = _option(
    schedules.Steps.decay_at,
    "Fractions of the run where 'steps' decays.",
    above=0,
    below=1,
  )
  decay_factor: tuple[float, ...] = _option(
    schedules.Steps.decay_factor,
    'Factors there; the last at all that follow.',
    above=0,
  )
  first_factor: float = _option(
    schedules.Steps.first_factor, "Of 'steps', in the first round.", above=0
  )
  decay_after: bool = _option(
    schedules.Steps.decay_after,
    "Of 'steps': decay past the fraction, not at it.",
  )
  round_decay: float = _option(
    schedules.Exponential.round_decay, "Factor of 'exponential'.", above=0
  )
  silent_rounds: int = _option(
    schedules.Exponential.silent_rounds,
    "Rounds before 'exponential' sets in.",
    least=0,
  )
  step_decay: float = _option(
    1.0, 'Factor on the rate at each step of a round.', above=0
  )
  epoch_decay: float = _option(
    1.0, 'Factor on the rate every epoch_decay_every epochs.', above=0
  )
  epoch_decay_every: int = _option(1, 'See epoch_decay.', least=1)
  client_parts: tuple[str, ...] = _option(
    (), 'Chain of parts: proximal, scaffold.'
  )
  proximal_weight: float = _option(
    clients.Proximal.proximal_weight, 'mu of proximal.', least=0
  )
  proximal_penalty: str = _option(
    clients.Proximal.proximal_penalty,
    f'Of proximal: {", ".join(clients.PENALTIES)}.',
  )

  # Server.
  pooling: str = _option('nwa', ', '.join(pooling_lib.RULES) + '.')
  weighting: str = _option('size', ', '.join(pooling_lib.WEIGHTINGS) + '.')
  discrepancy: str = _option(
    weightings.MaxDiscrepancy.discrepancy,
    "Of max_discrepancy: 'largest' or, as printed, 'nearest'.",
  )
  min_scale: float = _option(
    rules.Rule.min_scale, 'Floor of pooled standard deviations.', above=0
  )
  dwc_min_precision: float = _option(
    rules.DistributedWeightConsolidation.dwc_min_precision,
    "Least precision that dwc accepts, as a fraction of the prior's.",
    above=0,
  )
  server_step: tuple[str, ...] = _option((), 'Chain of stages: momentum.')
  server_momentum: float = _option(
    server.Momentum.server_momentum, 'Of momentum.', least=0, below=1
  )
  server_dampening: float = _option(
    server.Momentum.server_dampening,
    'Of momentum: how much less of an update counts beside the velocity.',
    least=0,
    below=1,
  )

  refine: tuple[str, ...] = _option(
    (),
    'Chain after server_step: distil, ensemble, fine_tune, recalibrate, '
    'students.',
  )
  start: tuple[str, ...] = _option(
    (), 'Chain of stages before the first round: fine_tune.'
  )
  server_epochs: int = _option(
    server.FineTune.server_epochs, 'At most, of fine_tune.', least=1
  )
  server_patience: int = _option(
    server.FineTune.server_patience,
    'Epochs without a better validation accuracy that end fine_tune; 0: none.',
    least=0,
  )
  server_learning_rate: float = _option(
    server.FineTune.server_learning_rate, 'Of fine_tune.', above=0
  )
  batch_norm: str = _option(
    server.BATCH_NORMS[0],
    "Moving statistics of pooled models and teachers: 'average' as pooled, or "
    "'recalibrate' on server data.",
  )

  # A Bayesian ensemble of a round's models, and its distillation.
  ensemble: tuple[str, ...] = _option(
    server.GROUPS,
    'Groups to make and score: A average, C clients, S samples.',
  )
  num_teacher_samples: int = _option(
    server.Ensemble.num_teacher_samples, 'Members of S.', least=0
  )
  teacher_posterior: str = _option(
    server.Ensemble.teacher_posterior,
    f'What S samples: {", ".join(server.TEACHER_POSTERIORS)}.',
  )
  gaussian_fit: str = _option(
    server.Ensemble.gaussian_fit, f'{", ".join(server.GAUSSIAN_FITS)}.'
  )
  dirichlet_alpha: float = _option(
    server.Ensemble.dirichlet_alpha, 'Of teacher_posterior=dirichlet.', above=0
  )
  min_sampled_variance: float = _option(
    server.Ensemble.min_sampled_variance,
    "Floor of a teacher's sampled moving variance, of the average's.",
    least=0,
  )
  predictor: str = _option(
    '', "Union of groups that is scored in place of the model: 'A+C+S'."
  )
  teachers: str = _option(
    server.Distil.teachers, 'Union of groups that is distilled.'
  )
  distillation_targets: str = _option(
    server.Distil.distillation_targets, f'{", ".join(server.TARGETS)}.'
  )
  sharpening: float = _option(
    server.Distil.sharpening, 'Exponent on targets.', above=0
  )
  students: tuple[str, ...] = _option(
    (), "Of refine=students, to compare: 'C:sgd,A+C+S:swa'."
  )
  distillation: str = _option(
    server.Distil.distillation, f'{", ".join(server.DISTILLATIONS)}.'
  )
  distillation_epochs: int = _option(
    server.Distil.distillation_epochs, 'Over the server data.', least=1
  )
  distillation_batch_size: int = _option(
    server.Distil.distillation_batch_size, 'Examples a step.', least=1
  )
  distillation_learning_rate: float = _option(
    server.Distil.distillation_learning_rate,
    'Of sgd; of swa where a cycle begins.',
    above=0,
  )
  swa_min_learning_rate: float = _option(
    server.Distil.swa_min_learning_rate, 'Of swa where a cycle ends.', above=0
  )
  swa_start: int = _option(
    server.Distil.swa_start, 'Steps before the first average.', least=0
  )
  swa_cycle: int = _option(
    server.Distil.swa_cycle, 'Steps of a cycle.', least=1
  )
  distillation_momentum: float = _option(
    0.9, 'Of the student.', least=0, below=1
  )
  distillation_weight_decay: float = _option(1e-5, 'Of the student.', least=0)
  distillation_augment: bool = _option(
    True, "Augment the student's inputs where --augment augments clients'."
  )

  # Evaluation and records.
  num_mc_samples: int = _option(10, 'Samples an evaluation.', least=1)
  final_num_mc_samples: int = _option(50, 'Samples at the last.', least=1)
  eval_every: int = _option(1, 'Rounds between evaluations.', least=1)
  num_eval_examples: int = _option(
    0, 'Test examples before the last evaluation; 0 for all.', least=0
  )
  num_bins: int = _option(15, 'Bins of the calibration error.', least=1)
  checkpoint_every: int = _option(1, 'Rounds between checkpoints.', least=1)

  # Machine.
  seed: int = _option(0, 'Of every draw in the run.', least=0)
  num_workers: int = _option(
    0, 'Devices to train on; 0 for all: changes no result.', least=0
  )
  distribution: str = _option(
    'clients', "'clients' side by side, or each 'mirrored' over all devices."
  )
  deterministic: bool = _option(False, 'Deterministic kernels on a GPU.')

  def __post_init__(self):
    for field in dataclasses.fields(self):
      if isinstance(field.default, float):
        # So that 1 from Python and 1.0 from a flag are the same run.
        object.__setattr__(self, field.name, float(getattr(self, field.name)))
      _check(field, getattr(self, field.name))
    if self.min_local_epochs > self.local_epochs:
      raise ValueError(
        f'--min_local_epochs={self.min_local_epochs} must not exceed '
        f'--local_epochs={self.local_epochs}.'
      )
    if max(self.clients_per_round, self.min_clients) > self.num_clients:
      raise ValueError(
        f'--clients_per_round={self.clients_per_round} and '
        f'--min_clients={self.min_clients} must not exceed '
        f'--num_clients={self.num_clients}.'
      )
    if self.min_clients > (self.clients_per_round or self.num_clients):
      raise ValueError(
        f'--min_clients={self.min_clients} must not exceed '
        f'--clients_per_round={self.clients_per_round}.'
      )


# Changing these changes no result.
MACHINE_FIELDS = ('num_workers',)


def _check(field, value):
  bounds = field.metadata['bounds']
  values = value if isinstance(value, tuple) else (value,)
  for v in values:
    if isinstance(v, int) and not abs(v) < 2**31:
      raise ValueError(f'--{field.name}={v} must be below 2^31.')
    if v in (math.inf, -math.inf):
      raise ValueError(f'--{field.name}={v} must be finite.')
    # Written so that NaN fails.
    if 'least' in bounds and not v >= bounds['least']:
      raise ValueError(
        f'--{field.name}={v} must be at least {bounds["least"]}.'
      )
    if 'above' in bounds and not v > bounds['above']:
      raise ValueError(f'--{field.name}={v} must be above {bounds["above"]}.')
    if 'below' in bounds and not v < bounds['below']:
      raise ValueError(f'--{field.name}={v} must be below {bounds["below"]}.')
