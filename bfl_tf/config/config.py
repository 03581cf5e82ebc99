"""What a run decides; the settings of its methods live with the methods.

Flags are derived from these fields and from the settings of what is chosen, a
preset is a file of flags.
"""

from collections.abc import Collection, Mapping
import dataclasses
import functools
import os
from typing import Annotated, Any, TypeVar

from bfl_tf import (
  attacks,
  component,
  methods,
  models,
  partitions,
  registry,
  server,
  training,
)
from bfl_tf import pooling as pooling_lib
from bfl_tf import settings as settings_lib
from bfl_tf.config import chosen as chosen_lib
from bfl_tf.config import flagfile
from bfl_tf.config import given as given_lib
from bfl_tf.datasets import preprocessing, reading
from bfl_tf.settings import Setting

T = TypeVar('T')

# Changing these changes no result, but for who comes too late.
MACHINE_FIELDS = ('num_workers', 'engine', 'client_timeout', 'tracker')


@dataclasses.dataclass(frozen=True)
class Config(reading.Reading):
  """The settings of a run; each field but the last is a flag of its name.

  `Config(partition='dirichlet', settings={'dirichlet.alpha': 0.1})`. A setting
  of a method that is not chosen is refused, unless it is one of `idle`: a
  preset's are, so that another method can be put behind it. One of `forgotten`
  may be of no method that anybody knows.

  Raises:
    ValueError: a value out of its bounds; the message names the flag.
  """

  # How images are changed; how they are read is in `Reading`.
  augment: Annotated[bool, Setting('Pad, random crop and flip on clients.')] = (
    False
  )
  augment_padding: Annotated[
    int, Setting('Pixels a side, of augment.', least=0)
  ] = 4
  augment_border: Annotated[
    str, Setting('What pads images:', choices=(*preprocessing.PADS,))
  ] = 'zeros'

  # Clients and their data.
  partition: Annotated[
    str, Setting('How examples are dealt:', table=partitions.PARTITIONS)
  ] = 'iid'
  num_clients: Annotated[int, Setting('Clients in all.', least=1)] = 10
  clients_per_round: Annotated[
    int, Setting('Clients drawn each round; 0 for all.', least=0)
  ] = 0
  min_clients: Annotated[
    int, Setting('Fewer accepted updates than this stop the run.', least=1)
  ] = 1
  max_update_norm: Annotated[
    float,
    Setting(
      "Largest L2 norm of a client's update of means and standard deviations, "
      "in units of the broadcast's norm; a larger update is rejected; 0: no "
      'bound.',
      least=0,
    ),
  ] = 1000.0
  num_server_examples: Annotated[
    int, Setting('Class-balanced examples held back for the server.', least=0)
  ] = 0
  server_fraction: Annotated[
    float,
    Setting(
      'The same as a fraction of the training examples.', least=0, below=1
    ),
  ] = 0.0
  server_dataset: Annotated[
    str,
    Setting("Unlabeled examples of another data set instead, as 'dataset'."),
  ] = ''
  server_split: Annotated[str, Setting('TFDS slice of server_dataset.')] = (
    'train'
  )
  resize: Annotated[
    bool, Setting("Fit server_dataset's images to the clients'.")
  ] = False
  num_unlabeled_examples: Annotated[
    int,
    Setting("Of the server's examples, how many it uses; 0 for all.", least=0),
  ] = 0

  # Model.
  model: Annotated[str, Setting('A network:', table=models.NETWORKS)] = 'mlp'
  variant: Annotated[str, Setting('Its weights:', table=training.VARIANTS)] = (
    'flipout'
  )
  kernel_initializer: Annotated[
    str,
    Setting(
      'Of kernels or their means; torch is its default, biases too:',
      choices=(*models.KERNEL_INITIALIZERS,),
    ),
  ] = 'he_normal'

  # Local training.
  num_rounds: Annotated[int, Setting('Rounds.', least=1)] = 20
  local_epochs: Annotated[
    int, Setting('Epochs a client trains a round.', least=1)
  ] = 1
  min_local_epochs: Annotated[
    int,
    Setting(
      'If positive, epochs are drawn from here to local_epochs.', least=0
    ),
  ] = 0
  early_local_epochs: Annotated[
    int,
    Setting('If positive, epochs of the first early_rounds rounds.', least=0),
  ] = 0
  early_rounds: Annotated[int, Setting('See early_local_epochs.', least=1)] = 5
  batch_size: Annotated[int, Setting('Examples a step.', least=1)] = 32
  client_optimizer: Annotated[
    str, Setting('Fresh each round:', table=training.OPTIMIZERS)
  ] = 'adam'
  client_learning_rate: Annotated[float, Setting('At first.', above=0)] = 1e-2
  max_gradient_norm: Annotated[
    float,
    Setting(
      "Clips a step's whole gradient to this L2 norm, before weight decay; not "
      'if 0.',
      least=0,
    ),
  ] = 0.0
  client_weight_decay: Annotated[
    float, Setting('Added to the gradient before momentum.', least=0)
  ] = 0.0
  decay_biases: Annotated[
    bool,
    Setting("Weight decay on biases and normalization's gamma and beta too."),
  ] = True
  learning_rate_schedule: Annotated[
    str, Setting('Over rounds:', table=training.SCHEDULES)
  ] = 'constant'
  step_decay: Annotated[
    float, Setting('Factor on the rate at each step of a round.', above=0)
  ] = 1.0
  epoch_decay: Annotated[
    float,
    Setting('Factor on the rate every epoch_decay_every epochs.', above=0),
  ] = 1.0
  epoch_decay_every: Annotated[int, Setting('See epoch_decay.', least=1)] = 1
  client_parts: Annotated[
    tuple[str, ...], Setting('Chain of parts:', table=methods.PARTS)
  ] = ()
  attack: Annotated[
    tuple[str, ...],
    Setting('What a fraction of the clients do wrong:', table=attacks.ATTACKS),
  ] = ()

  # Server.
  pooling: Annotated[str, Setting('A rule:', table=pooling_lib.RULES)] = 'nwa'
  weighting: Annotated[
    str,
    Setting(
      'Weight of each client in the pooled posterior; auto is size where the '
      'pooling rule takes weights:',
      table=pooling_lib.WEIGHTINGS,
    ),
  ] = 'auto'
  server_step: Annotated[
    tuple[str, ...],
    Setting('Chain of stages after pooling:', table=methods.STAGES),
  ] = ()
  refine: Annotated[
    tuple[str, ...],
    Setting('Chain of stages after server_step:', table=methods.STAGES),
  ] = ()
  start: Annotated[
    tuple[str, ...],
    Setting('Chain of stages before the first round:', table=methods.STAGES),
  ] = ()
  batch_norm: Annotated[
    str,
    Setting(
      'Moving statistics of pooled models and teachers: as pooled, or measured '
      'on server data:',
      choices=server.BATCH_NORMS,
    ),
  ] = 'average'
  predictor: Annotated[
    str, Setting("Groups whose union is scored in place of the model: 'A+C+S'.")
  ] = ''

  # Evaluation and records.
  num_mc_samples: Annotated[int, Setting('Samples an evaluation.', least=1)] = (
    10
  )
  final_num_mc_samples: Annotated[
    int, Setting('Samples at the last.', least=1)
  ] = 50
  eval_every: Annotated[
    int, Setting('Rounds between evaluations.', least=1)
  ] = 1
  num_eval_examples: Annotated[
    int,
    Setting('Test examples before the last evaluation; 0 for all.', least=0),
  ] = 0
  num_bins: Annotated[
    int, Setting('Bins of the calibration error.', least=1)
  ] = 15
  checkpoint_every: Annotated[
    int, Setting('Rounds between checkpoints.', least=1)
  ] = 1
  tracker: Annotated[
    tuple[str, ...],
    Setting('What records rounds besides:', choices=('wandb', 'mlflow')),
  ] = ()

  # Machine.
  seed: Annotated[int, Setting('Of every draw in the run.', least=0)] = 0
  num_workers: Annotated[
    int, Setting('Devices to train on; 0 for all: changes no result.', least=0)
  ] = 0
  distribution: Annotated[
    str,
    Setting(
      'Clients side by side, or each over all devices:',
      choices=training.DISTRIBUTIONS,
    ),
  ] = 'clients'
  deterministic: Annotated[bool, Setting('Deterministic kernels on a GPU.')] = (
    False
  )
  mixed_precision: Annotated[
    bool, Setting('Convolutions and matrix products in bfloat16.')
  ] = False
  engine: Annotated[
    str,
    Setting(
      'Where clients train, to the same bits: in this process, or as apps of '
      'Flower:',
      choices=('local', 'flower'),
    ),
  ] = 'local'
  client_timeout: Annotated[
    float,
    Setting(
      'Seconds that a round waits for a client of --engine=flower; 0 for ever.',
      least=0,
    ),
  ] = 0.0

  # Of methods, by `<method>.<setting>`; only what differs from a default stays.
  settings: Mapping[str, Any] = dataclasses.field(
    default_factory=dict, hash=False
  )

  idle: dataclasses.InitVar[Collection[str]] = frozenset()
  forgotten: dataclasses.InitVar[Collection[str]] = frozenset()

  chosen: chosen_lib.Chosen = dataclasses.field(
    init=False, repr=False, compare=False
  )

  def __post_init__(self, idle, forgotten):
    for name, declared in FIELDS.items():
      value = declared.checked(name, getattr(self, name))
      object.__setattr__(self, name, value)
    values = {name: getattr(self, name) for name in FIELDS}
    chosen = chosen_lib.Chosen(_roles(values), self.settings)
    for key in chosen.unused:
      if key not in forgotten:
        chosen_lib.refuse(key, chosen, known_methods(), key not in idle)
    object.__setattr__(self, 'chosen', chosen)
    object.__setattr__(self, 'settings', chosen.settings)
    self._check_together()

  def _check_together(self):
    """Refuses values that are each within bounds and not together."""
    if self.client_timeout and self.engine == 'local':
      raise ValueError(
        f'--client_timeout={self.client_timeout} needs --engine=flower: a '
        'training in this process cannot be stopped.'
      )
    if self.num_server_examples and self.server_fraction:
      raise ValueError(
        f'--num_server_examples={self.num_server_examples} and '
        f'--server_fraction={self.server_fraction} mean the same examples: set '
        'one of them to 0.'
      )
    if self.min_local_epochs > self.local_epochs:
      raise ValueError(
        f'--min_local_epochs={self.min_local_epochs} must not exceed '
        f'--local_epochs={self.local_epochs}.'
      )
    asked = self.clients_per_round or self.num_clients
    if not self.min_clients <= asked <= self.num_clients:
      raise ValueError(
        f'--clients_per_round={self.clients_per_round} (0: all) must not '
        f'exceed --num_clients={self.num_clients}, nor --min_clients='
        f'{self.min_clients} the clients of a round.'
      )

  @classmethod
  def of(
    cls,
    values: Mapping[str, Any],
    typed: Collection[str] = (),
    forgotten: Collection[str] = (),
  ) -> 'Config':
    """Returns the config of fields and settings in one mapping.

    Args:
      values: by field or setting, as `{'num_rounds': 3, 'sgd.momentum': 0.9}`.
      typed: settings that may not lie idle; all others may.
      forgotten: as of the class.
    """
    fields = {name: v for name, v in values.items() if name in FIELDS}
    given = {name: v for name, v in values.items() if name not in FIELDS}
    for name in given:
      if '.' not in name:
        raise ValueError(f'--{name} is unknown.{near(name)}')
    idle = given.keys() - {*typed}
    return cls(**fields, settings=given, idle=idle, forgotten=forgotten)

  @classmethod
  def from_flagfile(cls, path: str | os.PathLike, **changes: Any) -> 'Config':
    """Returns the config of a file of flags, with other fields and settings.

    `Config.from_flagfile('configs/quickstart.flags', pooling='lp')`; `settings`
    as of the class.
    """
    changes |= changes.pop('settings', {})
    return cls.of({**read_flagfile(path), **changes}, typed=changes)

  def replace(self, **changes: Any) -> 'Config':
    """Returns the config with other fields; what they leave idle is dropped."""
    changes |= changes.pop('settings', {})
    values = {name: getattr(self, name) for name in FIELDS}
    return Config.of(
      {**values, **self.settings, **changes},
      typed=changes,
      forgotten=self.settings.keys() - changes,
    )

  def get(self, key: str) -> Any:
    """Returns a setting by `<method>.<setting>`; None if it is not chosen."""
    return self.chosen.get(key)

  def given(self, **of_run: Any) -> dict[str, Any]:
    """Returns what methods may ask for: fields of `GIVEN`, and of the run."""
    to_all = [name for name, roles in given_lib.GIVEN.items() if not roles]
    return {name: getattr(self, name) for name in to_all} | of_run

  def make(self, role: str, base: type[T], **of_run: Any) -> T:
    """Makes the method of a field.

    Args:
      role: Name of the field.
      base: Base class that user code must inherit from.
      **of_run: As of `given`.
    """
    made = self.chosen.of(role).make(self.given(**of_run))
    component.check(role, made, base)
    return made

  def chain(self, role: str, base: type[T], **of_run: Any) -> tuple[T, ...]:
    """Makes the methods of a field, in order; arguments as of `make`."""
    given = self.given(**of_run)
    members = tuple(each.make(given) for each in self.chosen.chains[role])
    for member in members:
      component.check(role, member, base, needs_name=True)
    chosen_lib.check_unique(f'--{role}', members)
    return members


FIELDS = settings_lib.of(Config)
ROLES = tuple(n for n, d in FIELDS.items() if d.table is not None)


def _roles(values) -> chosen_lib.Roles:
  """Returns the fields that choose methods, with value and table."""
  return {role: (values[role], FIELDS[role].table or {}) for role in ROLES}


@functools.cache
def known_methods() -> list[chosen_lib.Choice]:
  """Returns every method of ours, once for every role that it may have."""
  defaults = {role: FIELDS[role].default for role in ROLES}
  return list(chosen_lib.known_methods(_roles(defaults)))


def known_settings() -> dict[str, settings_lib.Declared]:
  """Returns the settings of every method of ours, by key."""
  return {
    method.key(setting): declared
    for method in known_methods()
    for setting, declared in method.declared.items()
  }


def read_flagfile(path: str | os.PathLike) -> dict[str, Any]:
  """Returns those fields and settings that a preset sets."""
  return flagfile.read(path, FIELDS, known_settings())


def near(name: str) -> str:
  """Returns a hint for what is no field: a setting, or nearly one of both."""
  keys = known_settings()
  same = [f'--{key}' for key in keys if key.endswith(f'.{name}')]
  if same:
    return f' Did you mean {" or ".join(same)}?'
  return registry.hint(name, [*FIELDS, *keys], '--{}')
