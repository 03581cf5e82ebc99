"""The flags of a run, in groups; each field is a flag of its name.

The settings of a method are declared in the constructor of the method.
"""

from collections.abc import Iterable, Mapping
import dataclasses
from typing import Any

from bfl_tf import methods, models, server, training
from bfl_tf.clients import attacks
from bfl_tf.data import dataset_config, partitions, preprocessing
from bfl_tf.declare import settings
from bfl_tf.declare.settings import setting
from bfl_tf.server.pooling import RULES, WEIGHTINGS


@dataclasses.dataclass(frozen=True)
class Clients:
  """Clients and their data."""

  partition: str = setting(
    'iid',
    'Partition of the training examples over clients.',
    table=partitions.PARTITIONS,
  )
  num_clients: int = setting(10, 'Number of clients of the run.', ge=1)
  clients_per_round: int = setting(
    0, 'Number of clients sampled in each round; 0 for all.', ge=0
  )
  min_clients: int = setting(
    1,
    'Minimum number of accepted updates per round; the run stops below it.',
    ge=1,
  )
  max_update_norm: float = setting(
    6.0,
    "Largest L2 norm of the change of a client's means, in units of the "
    'median of accepted updates of earlier rounds; in the first round, of '
    'the norm of the broadcast. The change of the standard deviations and '
    'of batch normalization has a similar bound. A larger change is scaled '
    'down; 0 for no bound.',
    ge=0,
  )
  attack: tuple[str, ...] = setting(
    (),
    'Attacks by a fraction of the clients, separated by commas.',
    table=attacks.ATTACKS,
  )
  augment: bool = setting(
    False, "Pad, crop and flip the clients' images at random."
  )
  augment_padding: int = setting(
    4, 'Padding on each side in pixels, for --augment.', ge=0
  )
  augment_border: str = setting(
    'zeros', 'Padding mode for --augment.', choices=(*preprocessing.PADS,)
  )


@dataclasses.dataclass(frozen=True)
class ServerData:
  """Data of the server."""

  num_server_examples: int = setting(
    0,
    'Number of class-balanced training examples held out for the server.',
    ge=0,
  )
  server_fraction: float = setting(
    0.0,
    'Fraction of the training examples held out for the server, in place of '
    '--num_server_examples.',
    ge=0,
    lt=1,
  )
  server_dataset: str = setting(
    '',
    'Data set whose examples the server uses without labels, in place of '
    'held-out training examples.',
  )
  server_split: str = setting('train', 'TFDS split of --server_dataset.')
  resize: bool = setting(
    False, "Resize the images of --server_dataset to the clients' size."
  )
  num_unlabeled_examples: int = setting(
    0, "Number of the server's examples that are used; 0 for all.", ge=0
  )


@dataclasses.dataclass(frozen=True)
class Model:
  """Model."""

  model: str = setting(
    'mlp', 'Network architecture of the clients.', table=models.NETWORKS
  )
  variant: str = setting(
    'flipout',
    'Treatment of the weights: deterministic, MC dropout, or Gaussian with '
    'Flipout.',
    table=training.VARIANTS,
  )
  likelihood: str = setting(
    'categorical',
    'Distribution of the labels: categorical for classes, gaussian for '
    'numbers (regression).',
    table=training.LIKELIHOODS,
  )
  kernel_initializer: str = setting(
    'he_normal',
    "Initializer of kernels, or of their means; torch is PyTorch's default "
    'and includes biases.',
    choices=(*models.KERNEL_INITIALIZERS,),
  )


@dataclasses.dataclass(frozen=True)
class Training:
  """Local training."""

  num_rounds: int = setting(20, 'Number of rounds of the run.', ge=1)
  local_epochs: int = setting(1, 'Number of local epochs per round.', ge=1)
  local_steps: int = setting(
    0,
    'Number of local steps per round, the same for each client; 0 for '
    '--local_epochs.',
    ge=0,
  )
  batch_size: int = setting(32, 'Mini-batch size of local training.', ge=1)
  client_optimizer: str = setting(
    'adam',
    'Client optimizer; its state is reset every round.',
    table=training.OPTIMIZERS,
  )
  client_learning_rate: float = setting(
    1e-2, 'Initial learning rate of the client optimizer.', gt=0
  )
  max_gradient_norm: float = setting(
    0.0,
    'Largest L2 norm of the whole gradient, clipped before weight decay; 0 '
    'for no clipping.',
    ge=0,
  )
  client_weight_decay: float = setting(
    0.0,
    'Weight decay coefficient, added to the gradient before momentum.',
    ge=0,
  )
  decay_biases: bool = setting(
    True,
    'Apply weight decay also to biases and to gamma and beta of '
    'normalization layers.',
  )
  schedule: str = setting(
    'constant',
    'Schedule of the learning rate and of the number of local epochs.',
    table=training.SCHEDULES,
  )
  client_parts: tuple[str, ...] = setting(
    (),
    'Client parts, which change the local training, separated by commas.',
    table=methods.CLIENT_PARTS,
  )


@dataclasses.dataclass(frozen=True)
class Server:
  """Server."""

  pooling: str = setting(
    'auto',
    "Rule that pools the clients' posteriors; auto is that of a client part, "
    'or else nwa.',
    table=RULES,
  )
  min_scale: float = setting(
    1e-6,
    'Lower bound on pooled standard deviations; `floored_fraction` reports how '
    'many weights reach it.',
    gt=0,
  )
  weighting: str = setting(
    'auto',
    'Weight of each client in the pooled posterior; auto is size where the '
    'pooling rule takes weights.',
    table=WEIGHTINGS,
  )
  privacy: str = setting(
    'none',
    'Differential privacy of clients: none, or central, where the server '
    'clips updates, adds noise, and samples clients independently.',
    table=server.PRIVACY,
  )
  server_parts: tuple[str, ...] = setting(
    (),
    'Server parts, which change the pooled model, in this order, separated by '
    'commas.',
    table=methods.SERVER_PARTS,
  )
  start: tuple[str, ...] = setting(
    (),
    'Server parts before the first round, separated by commas.',
    table=methods.SERVER_PARTS,
  )
  batch_norm: str = setting(
    'average',
    'Moving statistics of batch normalization in pooled models and teachers: '
    "the average of the clients', or estimated again on the server's data.",
    choices=server.BATCH_NORMS,
  )


@dataclasses.dataclass(frozen=True)
class Evaluation:
  """Evaluation."""

  predictor: str = setting(
    '',
    'Groups of models to evaluate in place of the global model, joined by '
    '+, such as A+C+S.',
  )
  predict_with: str = setting(
    'auto',
    'Predictions of a posterior: its samples, its mean, or samples of the '
    'network linearized at the mean; auto is samples, except for the client '
    'optimizer laplace.',
    choices=('auto', 'samples', 'mean', 'linearized'),
  )
  posterior_factor: float = setting(
    -1.0,
    'Factor on the standard deviations of a Gaussian posterior in predictions; '
    '0 predicts with its mean. -1 chooses it after the last round by the NLL '
    'of validation examples, or else of half of the calibration examples; '
    'without them, it is 1 for samples and 0 for the mean (--predict_with).',
    ge=-1,
  )
  fitted_temperature: float = setting(
    -1.0,
    'Temperature of calibrated predictions (--calibrated); -1 fits it after '
    'the last round on calibration examples, or else on validation examples.',
    ge=-1,
  )
  num_mc_samples: int = setting(
    10, 'Number of Monte Carlo samples per evaluation.', ge=1
  )
  final_num_mc_samples: int = setting(
    50, 'Number of Monte Carlo samples in the final evaluation.', ge=1
  )
  own_scores: tuple[str, ...] = setting(
    (),
    'Scores of your own, package.module:function, of probabilities and labels; '
    'for numbers, of means, standard deviations and labels.',
    table={},
  )
  eval_every: int = setting(
    1, 'Number of rounds between two evaluations.', ge=1
  )
  num_eval_examples: int = setting(
    0,
    'Number of test examples per evaluation, except the final one; 0 for all.',
    ge=0,
  )
  personal_scores: bool = setting(
    False,
    "Score each client's own model on its test examples: the global model, if "
    'the method has no other.',
  )
  num_bins: int = setting(15, 'Number of bins of the calibration error.', ge=1)


@dataclasses.dataclass(frozen=True)
class Machine:
  """Machine and output."""

  seed: int = setting(
    0,
    'Random seed; determines every random draw of the run, except the noise '
    'and the samples of clients with --privacy.',
    ge=0,
  )
  data_seed: int = setting(
    -1,
    'Random seed of the partition, the held-out examples, the sampled and the '
    'malicious clients; -1 for --seed, which determines all other draws.',
    ge=-1,
  )
  num_workers: int = setting(
    0,
    'Number of devices to train on, at most four times the number of cores; '
    '0 for all; the results do not depend on it.',
    ge=0,
  )
  clients_per_device: int = setting(
    1,
    'Number of clients that train at the same time on a GPU; the results do '
    'not depend on it.',
    ge=1,
  )
  distribution: str = setting(
    'clients',
    'Use of several devices: clients in parallel, or each client on all '
    'devices.',
    choices=training.DISTRIBUTIONS,
  )
  deterministic: bool = setting(False, 'Use deterministic kernels on a GPU.')
  mixed_precision: bool = setting(
    False,
    'Compute the layers of networks in bfloat16, with variables in float32.',
  )
  jit_compile: bool = setting(
    False,
    'Compile the steps of the local training with XLA, for GPUs; slower on a '
    'CPU.',
  )
  debug: bool = setting(
    False,
    'Train without compilation, in one thread, so that print, breakpoint() '
    'and a debugger work in client parts and optimizers; slow.',
  )
  engine: str = setting(
    'local',
    'Place where clients train, with the same results: this process, or '
    'apps of Flower.',
    choices=('local', 'flower'),
  )
  client_timeout: float = setting(
    0.0,
    'Time in seconds that a round waits for a client of --engine=flower; 0 '
    'for no limit.',
    ge=0,
  )
  checkpoint_every: int = setting(
    1, 'Number of rounds between two checkpoints.', ge=1
  )
  tracker: tuple[str, ...] = setting(
    (),
    'Experiment trackers that also receive the scores of each round.',
    choices=('wandb', 'mlflow'),
  )


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
  'quiet_data',
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
