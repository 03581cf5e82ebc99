"""The flags of a run, in groups; each field is a flag of its name.

The settings of a method are declared in the constructor of the method.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import dataclasses
from typing import Annotated, Any

from bfl_tf import methods, models, server, training
from bfl_tf.clients import attacks
from bfl_tf.data import dataset_config, partitions, preprocessing
from bfl_tf.declare import settings
from bfl_tf.declare.settings import Setting
from bfl_tf.server.pooling import RULES, WEIGHTINGS


@dataclasses.dataclass(frozen=True)
class Clients:
  """Clients and their data."""

  partition: Annotated[
    str,
    Setting(
      'Partition of the training examples over clients.',
      table=partitions.PARTITIONS,
    ),
  ] = 'iid'
  num_clients: Annotated[
    int, Setting('Number of clients of the run.', ge=1)
  ] = 10
  clients_per_round: Annotated[
    int, Setting('Number of clients sampled in each round; 0 for all.', ge=0)
  ] = 0
  min_clients: Annotated[
    int,
    Setting(
      'Minimum number of accepted updates per round; the run stops below it.',
      ge=1,
    ),
  ] = 1
  max_update_norm: Annotated[
    float,
    Setting(
      "Largest L2 norm of the change of a client's means, in units of the "
      'median of accepted updates of earlier rounds; in the first round, of '
      'the norm of the broadcast. The change of the standard deviations and '
      'of batch normalization has a similar bound. A larger change is scaled '
      'down; 0 for no bound.',
      ge=0,
    ),
  ] = 6.0
  attack: Annotated[
    tuple[str, ...],
    Setting(
      'Attacks by a fraction of the clients, separated by commas.',
      table=attacks.ATTACKS,
    ),
  ] = ()
  augment: Annotated[
    bool, Setting("Pad, crop and flip the clients' images at random.")
  ] = False
  augment_padding: Annotated[
    int, Setting('Padding on each side in pixels, for --augment.', ge=0)
  ] = 4
  augment_border: Annotated[
    str, Setting('Padding mode for --augment.', choices=(*preprocessing.PADS,))
  ] = 'zeros'


@dataclasses.dataclass(frozen=True)
class ServerData:
  """Data of the server."""

  num_server_examples: Annotated[
    int,
    Setting(
      'Number of class-balanced training examples held out for the server.',
      ge=0,
    ),
  ] = 0
  server_fraction: Annotated[
    float,
    Setting(
      'Fraction of the training examples held out for the server, in place of '
      '--num_server_examples.',
      ge=0,
      lt=1,
    ),
  ] = 0.0
  server_dataset: Annotated[
    str,
    Setting(
      'Data set whose examples the server uses without labels, in place of '
      'held-out training examples.'
    ),
  ] = ''
  server_split: Annotated[str, Setting('TFDS split of --server_dataset.')] = (
    'train'
  )
  resize: Annotated[
    bool, Setting("Resize the images of --server_dataset to the clients' size.")
  ] = False
  num_unlabeled_examples: Annotated[
    int,
    Setting("Number of the server's examples that are used; 0 for all.", ge=0),
  ] = 0


@dataclasses.dataclass(frozen=True)
class Model:
  """Model."""

  model: Annotated[
    str, Setting('Network architecture of the clients.', table=models.NETWORKS)
  ] = 'mlp'
  variant: Annotated[
    str,
    Setting(
      'Treatment of the weights: deterministic, MC dropout, or Gaussian with '
      'Flipout.',
      table=training.VARIANTS,
    ),
  ] = 'flipout'
  likelihood: Annotated[
    str,
    Setting(
      'Distribution of the labels: categorical for classes, gaussian for '
      'numbers (regression).',
      table=training.LIKELIHOODS,
    ),
  ] = 'categorical'
  kernel_initializer: Annotated[
    str,
    Setting(
      "Initializer of kernels, or of their means; torch is PyTorch's default "
      'and includes biases.',
      choices=(*models.KERNEL_INITIALIZERS,),
    ),
  ] = 'he_normal'


@dataclasses.dataclass(frozen=True)
class Training:
  """Local training."""

  num_rounds: Annotated[int, Setting('Number of rounds of the run.', ge=1)] = 20
  local_epochs: Annotated[
    int, Setting('Number of local epochs per round.', ge=1)
  ] = 1
  min_local_epochs: Annotated[
    int,
    Setting(
      'Minimum number of local epochs; if positive, the number is sampled '
      'between it and --local_epochs.',
      ge=0,
    ),
  ] = 0
  early_local_epochs: Annotated[
    int,
    Setting(
      'Number of local epochs in the first --early_rounds rounds; 0 for '
      '--local_epochs.',
      ge=0,
    ),
  ] = 0
  early_rounds: Annotated[
    int, Setting('Number of rounds for --early_local_epochs.', ge=1)
  ] = 5
  local_steps: Annotated[
    int,
    Setting(
      'Number of local steps per round, the same for each client; 0 for '
      '--local_epochs.',
      ge=0,
    ),
  ] = 0
  batch_size: Annotated[
    int, Setting('Mini-batch size of local training.', ge=1)
  ] = 32
  client_optimizer: Annotated[
    str,
    Setting(
      'Client optimizer; its state is reset every round.',
      table=training.OPTIMIZERS,
    ),
  ] = 'adam'
  client_learning_rate: Annotated[
    float, Setting('Initial learning rate of the client optimizer.', gt=0)
  ] = 1e-2
  max_gradient_norm: Annotated[
    float,
    Setting(
      'Largest L2 norm of the whole gradient, clipped before weight decay; 0 '
      'for no clipping.',
      ge=0,
    ),
  ] = 0.0
  client_weight_decay: Annotated[
    float,
    Setting(
      'Weight decay coefficient, added to the gradient before momentum.', ge=0
    ),
  ] = 0.0
  decay_biases: Annotated[
    bool,
    Setting(
      'Apply weight decay also to biases and to gamma and beta of '
      'normalization layers.'
    ),
  ] = True
  learning_rate_schedule: Annotated[
    str,
    Setting('Learning rate schedule over rounds.', table=training.SCHEDULES),
  ] = 'constant'
  step_decay: Annotated[
    float,
    Setting('Factor on the learning rate after each step of a round.', gt=0),
  ] = 1.0
  epoch_decay: Annotated[
    float,
    Setting(
      'Factor on the learning rate after every --epoch_decay_every epochs of '
      'a round.',
      gt=0,
    ),
  ] = 1.0
  epoch_decay_every: Annotated[
    int, Setting('Number of epochs between two factors --epoch_decay.', ge=1)
  ] = 1
  client_parts: Annotated[
    tuple[str, ...],
    Setting(
      'Client parts, which change the local training, separated by commas.',
      table=methods.PARTS,
    ),
  ] = ()


@dataclasses.dataclass(frozen=True)
class Server:
  """Server."""

  pooling: Annotated[
    str, Setting("Rule that pools the clients' posteriors.", table=RULES)
  ] = 'nwa'
  weighting: Annotated[
    str,
    Setting(
      'Weight of each client in the pooled posterior; auto is size where the '
      'pooling rule takes weights.',
      table=WEIGHTINGS,
    ),
  ] = 'auto'
  privacy: Annotated[
    str,
    Setting(
      'Differential privacy of clients: none, or central, where the server '
      'clips updates, adds noise, and samples clients independently.',
      table=server.PRIVACY,
    ),
  ] = 'none'
  server_step: Annotated[
    tuple[str, ...],
    Setting(
      'Server stages after pooling, separated by commas.', table=server.STAGES
    ),
  ] = ()
  refine: Annotated[
    tuple[str, ...],
    Setting(
      'Server stages after --server_step, separated by commas.',
      table=server.STAGES,
    ),
  ] = ()
  start: Annotated[
    tuple[str, ...],
    Setting(
      'Server stages before the first round, separated by commas.',
      table=server.STAGES,
    ),
  ] = ()
  batch_norm: Annotated[
    str,
    Setting(
      'Moving statistics of batch normalization in pooled models and teachers: '
      "the average of the clients', or estimated again on the server's data.",
      choices=server.BATCH_NORMS,
    ),
  ] = 'average'


@dataclasses.dataclass(frozen=True)
class Evaluation:
  """Evaluation."""

  predictor: Annotated[
    str,
    Setting(
      'Groups of models to evaluate in place of the global model, joined by '
      '+, such as A+C+S.'
    ),
  ] = ''
  predict_with: Annotated[
    str,
    Setting(
      'Predictions of a posterior: its samples, or its mean; auto is samples, '
      'except for the client optimizer laplace.',
      choices=('auto', 'samples', 'mean'),
    ),
  ] = 'auto'
  num_mc_samples: Annotated[
    int, Setting('Number of Monte Carlo samples per evaluation.', ge=1)
  ] = 10
  final_num_mc_samples: Annotated[
    int, Setting('Number of Monte Carlo samples in the final evaluation.', ge=1)
  ] = 50
  eval_every: Annotated[
    int, Setting('Number of rounds between two evaluations.', ge=1)
  ] = 1
  num_eval_examples: Annotated[
    int,
    Setting(
      'Number of test examples per evaluation, except the final one; 0 for '
      'all.',
      ge=0,
    ),
  ] = 0
  num_bins: Annotated[
    int, Setting('Number of bins of the calibration error.', ge=1)
  ] = 15


@dataclasses.dataclass(frozen=True)
class Machine:
  """Machine and output."""

  seed: Annotated[
    int,
    Setting(
      'Random seed; determines every random draw of the run, except the noise '
      'and the samples of clients with --privacy.',
      ge=0,
    ),
  ] = 0
  num_workers: Annotated[
    int,
    Setting(
      'Number of devices to train on, at most four times the number of cores; '
      '0 for all; the results do not depend on it.',
      ge=0,
    ),
  ] = 0
  clients_per_device: Annotated[
    int,
    Setting(
      'Number of clients that train at the same time on a GPU; the results do '
      'not depend on it.',
      ge=1,
    ),
  ] = 1
  distribution: Annotated[
    str,
    Setting(
      'Use of several devices: clients in parallel, or each client on all '
      'devices.',
      choices=training.DISTRIBUTIONS,
    ),
  ] = 'clients'
  deterministic: Annotated[
    bool, Setting('Use deterministic kernels on a GPU.')
  ] = False
  mixed_precision: Annotated[
    bool,
    Setting(
      'Compute the layers of networks in bfloat16, with variables in float32.'
    ),
  ] = False
  jit_compile: Annotated[
    bool,
    Setting(
      'Compile the steps of the local training with XLA, for GPUs; slower on a '
      'CPU.'
    ),
  ] = False
  debug: Annotated[
    bool,
    Setting(
      'Train without compilation, in one thread, so that print, breakpoint() '
      'and a debugger work in client parts and optimizers; slow.'
    ),
  ] = False
  engine: Annotated[
    str,
    Setting(
      'Place where clients train, with the same results: this process, or '
      'apps of Flower.',
      choices=('local', 'flower'),
    ),
  ] = 'local'
  client_timeout: Annotated[
    float,
    Setting(
      'Time in seconds that a round waits for a client of --engine=flower; 0 '
      'for no limit.',
      ge=0,
    ),
  ] = 0.0
  checkpoint_every: Annotated[
    int, Setting('Number of rounds between two checkpoints.', ge=1)
  ] = 1
  tracker: Annotated[
    tuple[str, ...],
    Setting(
      'Experiment trackers that also receive the scores of each round.',
      choices=('wandb', 'mlflow'),
    ),
  ] = ()


# In the order of `--help`; a group's docstring is its heading.
GROUPS: tuple[type, ...] = (
  dataset_config.DatasetConfig,
  Clients,
  ServerData,
  Model,
  Training,
  Server,
  Evaluation,
  Machine,
)
FIELDS = {
  name: spec for group in GROUPS for name, spec in settings.of(group).items()
}
# Fields whose values name methods.
ROLES = tuple(name for name, spec in FIELDS.items() if spec.table is not None)
# Fields that do not change results, unless clients reply too late.
MACHINE_FIELDS = (
  'num_workers',
  'clients_per_device',
  'engine',
  'client_timeout',
  'tracker',
)


def roles_of(
  values: Mapping[str, Any], names: Iterable[str] = ROLES
) -> dict[str, tuple[Any, Mapping[str, Any]]]:
  """Returns value and table by role; a missing value is the default."""
  return {
    role: (
      FIELDS[role].checked(role, values.get(role, FIELDS[role].default)),
      FIELDS[role].table or {},
    )
    for role in names
  }
