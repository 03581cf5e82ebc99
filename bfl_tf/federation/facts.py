"""Checks that the parts of a run fit together.

Each part states in its hook `check` what it needs, in Python. This module
checks what concerns several parts. Each check raises a ValueError that names
the flag and the fix.
"""

from collections.abc import Sequence
import dataclasses
from typing import Any

from bfl_tf import server, training
from bfl_tf.clients import attacks as attacks_lib
from bfl_tf.data import partitions
from bfl_tf.declare import component, user_code


@dataclasses.dataclass(frozen=True)
class Facts:
  """The argument of `Part.check`: a run, and how to reject it.

  Attributes:
    plan: The `federation.Plan`. Its attributes, such as `config`, `pool`,
      `weighting` and `optimizer`, are also attributes of the facts.
    trainings: Tuples (client, number of steps, number of examples), for the
      shortest and the longest training of each client; empty before the data
      are read.
    tools: `server.Resources`; None before the data are read.
    model: `tf.TensorSpec`s of the model that a client sends; None before.
    extras: Names of the parts that send another vector.
  """

  plan: Any
  flag: str = ''
  trainings: Sequence[tuple[int, int, int]] = ()
  tools: Any = None
  model: Any = None
  extras: Sequence[str] = ()

  def __getattr__(self, name: str) -> Any:
    """Returns `config`, `pool`, `weighting`, `optimizer` and so on."""
    if name.startswith('_'):
      raise AttributeError(name)
    return getattr(self.plan, name)

  @property
  def is_private(self) -> bool:
    """Whether the run has differential privacy."""
    return self.plan.privacy.is_private

  @property
  def clients_of_a_round(self) -> int:
    """Number of clients of a round."""
    config = self.plan.config
    return config.clients_per_round or config.num_clients

  def need(self, condition: Any, what: str) -> None:
    """Raises a ValueError unless the condition is true."""
    if not condition:
      raise ValueError(f'{self.flag} needs {what}.')

  def need_sgd(self) -> None:
    """Demands SGD, perhaps with momentum."""
    self.need(self.plan.optimizer.is_sgd, '--client_optimizer=sgd')

  def need_plain_sgd(self) -> None:
    """Demands SGD without momentum."""
    self.need(
      self.plan.optimizer.is_plain_sgd,
      '--client_optimizer=sgd and --sgd.momentum=0',
    )

  def need_constant_weights(self) -> None:
    """Demands a client weight that is the same in all rounds."""
    self.need(self.plan.weighting.is_constant, '--weighting=size or equal')

  def need_standard_objective(self, *names: str) -> None:
    """Demands the KL term of the paper, or some of its settings."""
    objective = self.plan.objective
    standard = objective.standard()
    for name in names or vars(standard):
      value, wanted = getattr(objective, name), getattr(standard, name)
      self.need(
        value == wanted,
        f'--{self.plan.inference.owner}.{name}={wanted}, not {value}',
      )

  def need_server_examples(self, labels: bool = False) -> None:
    """Demands examples on the server, with labels or not."""
    config = self.plan.config
    own = config.num_server_examples or config.server_fraction
    if labels:
      self.need(
        own and not config.server_dataset,
        'labeled examples on the server: set --num_server_examples; '
        '--server_dataset has no labels',
      )
    self.need(
      own or config.server_dataset,
      'examples on the server: set --num_server_examples or --server_dataset',
    )


def check(facts: Facts) -> None:
  """Checks a plan before the data are read, or with them."""
  plan = facts.plan
  for flag, part in plan.flags_of_parts():
    own = dataclasses.replace(facts, flag=flag)
    error = user_code.attempt(part.check, own)
    if isinstance(error, ValueError):
      raise error
    if isinstance(error, BaseException):
      raise user_code.RaisedError(
        f'{flag}: its hook check raised {user_code.describe(error)}.'
      ) from error
  if facts.model is None:
    _check_prior(plan)
    _check_weighting(plan)
    _check_servers(plan)
    if plan.config.is_numeric:
      _check_numbers(plan)
  else:
    _check_exact(plan)
    _check_covariance(plan, facts.model)
    _check_pool(plan, facts.model)


def _check_exact(plan):
  """Rejects parts that change the update of an exact part."""
  traced = plan.traced
  for part in plan.locals:
    changed = traced.start_changed_by | traced.model_changed_by
    others = sorted(changed - {part.name})
    if part.exact and others:
      raise ValueError(
        f'--client_parts={part.name} cannot be combined with {others[0]}, '
        'which changes the start or the result of the training: remove one of '
        'them.'
      )


def _check_covariance(plan, model):
  """Rejects a full covariance of too many weights."""
  size, most = model.loc.shape[0], training.MOST_WEIGHTS
  if plan.inference.factor_rank(size) > most:
    raise ValueError(
      f'--laplace.covariance=full supports at most {most} weights, and '
      f'--model={plan.config.model} has {size}: choose a smaller --model, or '
      '--laplace.covariance=diagonal.'
    )


def _check_prior(plan):
  """Rejects two priors, and a prior without a posterior."""
  objective = plan.objective
  provider = training.Chain(plan.locals).provider
  by = plan.flag('update_prior')
  if provider:
    by = f'--client_parts={provider.name}'
  if provider and not plan.inference.has_prior:
    raise ValueError(
      f'{by} sets the prior of the clients, which needs a posterior: set '
      '--variant=flipout, or --client_optimizer=ivon or laplace.'
    )
  if provider and plan.optimizer.has_full_covariance:
    raise ValueError(
      f'{by} needs posteriors with independent weights: set '
      '--laplace.covariance=diagonal.'
    )
  if provider and objective.update_prior:
    raise ValueError(
      f'{by} sets the prior of each client: remove {plan.flag("update_prior")}.'
    )
  if objective.kl_reduction == 'tied' and (provider or objective.update_prior):
    raise ValueError(
      f'{plan.flag("kl_reduction")} ties the mean of the prior to the '
      f'posterior: remove {by}.'
    )
  initial = getattr(objective, 'initial_scale', 0)
  if 0 < objective.max_scale < initial:
    raise ValueError(
      f'{plan.flag("max_scale")} is below {plan.flag("initial_scale")}: '
      'lower the initial scale.'
    )


def _check_numbers(plan):
  """Rejects flags that need classes, for numeric labels."""
  config = plan.config
  needs_classes = {
    'partition': config.selection.of('partition').factory
    in {*partitions.PARTITIONS.values()} - {*partitions.FOR_NUMBERS},
    'attack': any(
      component.overrides(attack, attacks_lib.Attack, 'labels')
      for attack in plan.attacks
    ),
  }
  for flag, needs in needs_classes.items():
    if needs:
      value = config.get(flag)
      value = ','.join(value) if isinstance(value, tuple) else value
      raise ValueError(
        f'--{flag}={value} supports classes only, not the numeric labels of '
        f'--likelihood={config.likelihood}: remove it.'
      )


def _check_pool(plan, model):
  """Rejects a rule for posteriors if the clients send none."""
  if model.loc.shape[0] or plan.pool.takes_points:
    return
  fix = (
    'a network with variational layers'
    if plan.inference.has_prior
    else f'--variant=flipout in place of {plan.config.variant}'
  )
  raise ValueError(
    f'{plan.flag_of_pool} pools posteriors, but the network is '
    f'deterministic: set {fix}, or a method that gives all weights a '
    'posterior (--client_optimizer=ivon or laplace, --client_parts=swag). '
    '--pooling=nwa accepts deterministic networks.'
  )


def _check_weighting(plan):
  """Rejects a weighting that the rule would ignore."""
  if not plan.pool.takes_weights and plan.config.weighting != 'auto':
    raise ValueError(
      f'{plan.flag_of_pool} uses no client weights: remove '
      f'--weighting={plan.config.weighting}.'
    )


def _check_servers(plan):
  """Checks the server parts of a run."""
  config = plan.config
  for part in plan.start:
    if part.has('terms') or part.has('slot'):
      raise ValueError(
        f'--start: {part.name} needs the updates of rounds: select it in '
        '--server_parts.'
      )
  makers = [part for part in plan.servers if part.group_names]
  if len(makers) > 1:
    names = ' and '.join(part.name for part in makers)
    raise ValueError(
      f'--server_parts: {names} would each create groups of models: select one '
      'of them.'
    )
  groups = [name for part in makers for name in part.group_names]
  if not config.predictor or config.predictor in groups:
    return
  if not groups:
    raise ValueError(
      f'--predictor={config.predictor}: no selected part makes groups of '
      'models: set --server_parts=ensemble.'
    )
  server.groups_of('predictor', config.predictor, groups)
