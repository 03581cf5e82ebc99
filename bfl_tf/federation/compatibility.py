"""Checks that the components of a run fit together.

Components state facts about themselves, such as `Rule.averages_means`, and the
facts that they require of others. A subclass inherits both. Each check raises a
ValueError that names the flag and the fix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bfl_tf import server, statistics, training, weights
from bfl_tf.clients import attacks as attacks_lib
from bfl_tf.config.config import FIELDS
from bfl_tf.data import partitions
from bfl_tf.declare import component, user_code
from bfl_tf.server import pooling

# Flags that give a fact which depends on settings.
_FLAGS = {'is_plain_sgd': '--client_optimizer=sgd and --sgd.momentum=0'}


def check_plan(plan: Any, variant: Any, weighting: Any, rule: Any) -> None:
  """Checks the clients' side of a method."""
  made = {
    'client_optimizer': plan.optimizer,
    'pooling': rule,
    'variant': variant,
    'weighting': weighting,
  }
  for part in plan.every_part:
    for role, fact in part.requires.items():
      if not getattr(made[role], fact):
        raise ValueError(
          f'--client_parts={part.name} needs {_having(role, fact)}.'
        )
    for fact in part.incompatible_with:
      for other in (*plan.parts, *plan.attacks):
        if other is not part and getattr(other, fact, False):
          raise ValueError(
            f'--client_parts={part.name} cannot be combined with '
            f'{other.name}: remove one of them.'
          )
    if part.keeps_batch_norm and plan.config.batch_norm == 'recalibrate':
      raise ValueError(
        f'--client_parts={part.name} keeps batch normalization on the clients: '
        'remove --batch_norm=recalibrate.'
      )
  _check_objective(plan, rule)
  _check_prior(plan)
  if plan.config.is_numeric:
    _check_numbers(plan)


def _having(role, fact) -> str:
  """Returns the flag with the components of this package that have a fact."""
  if fact in _FLAGS:
    return _FLAGS[fact]
  table = FIELDS[role].table or {}
  names = [name for name, made in table.items() if getattr(made, fact, False)]
  return f'--{role}={" or ".join(names)}, or another one with {fact}'


def _check_objective(plan, rule):
  """Rejects forms of the KL term for which a rule or a part is wrong."""
  objective, standard = plan.objective, plan.objective.standard()
  required = [
    (f'--client_parts={part.name}', part.standard_settings)
    for part in plan.parts
  ]
  if rule.needs_prior:
    flag = f'--pooling={plan.config.pooling} divides out the whole prior and'
    required.append((flag, tuple(vars(standard))))
  for flag, names in required:
    for name in names:
      value = getattr(standard, name)
      if getattr(objective, name) != value:
        raise ValueError(
          f'{flag} needs --{plan.inference.owner}.{name}={value}, not '
          f'{getattr(objective, name)}.'
        )
  if rule.needs_prior and not (
    objective.update_prior
    or any(part.requires.get('pooling') == 'needs_prior' for part in plan.parts)
  ):
    raise ValueError(
      f'--pooling={plan.config.pooling} divides out the broadcast posterior, '
      'so that clients must use it as their prior: set '
      f'--{plan.inference.owner or "flipout"}.update_prior, or a client part '
      'that requires this rule.'
    )


def _check_prior(plan):
  """Rejects two priors, and a prior without a posterior."""
  objective = plan.objective
  provider = training.Chain(plan.parts).provider
  by = plan.flag('update_prior')
  if provider:
    by = f'--client_parts={provider.name}'
  if provider and not plan.inference.has_prior:
    raise ValueError(
      f'{by} sets the prior of the clients, which needs a posterior: set '
      '--variant=flipout, or --client_optimizer=ivon or laplace.'
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


def check_rule(plan: Any, rule: Any, layout: weights.Layout) -> None:
  """Checks that a rule can pool the posteriors of a run."""
  config = plan.config
  if not (layout.size('loc') or rule.takes_points):
    fix = (
      'a network with variational layers'
      if plan.inference.has_prior
      else f'--variant=flipout in place of {config.variant}'
    )
    raise ValueError(
      f'--pooling={config.pooling} pools posteriors, but the network is '
      f'deterministic: set {fix}, or a method that gives all weights a '
      'posterior (--client_optimizer=ivon or laplace, --client_parts=swag). '
      '--pooling=nwa accepts deterministic networks.'
    )
  if not rule.takes_weights and config.weighting != 'auto':
    raise ValueError(
      f'--pooling={config.pooling} uses no client weights: remove '
      f'--weighting={config.weighting}.'
    )
  rank = max((part.rank for part in plan.parts), default=0)
  num_clients = config.clients_per_round or config.num_clients
  rule.check(num_clients, rank, layout.size('loc'))
  if not component.overrides(rule, pooling.Rule, 'accumulate'):
    user_code.call(f'--pooling={config.pooling}', _pool_an_example, rule)


def _pool_an_example(rule):
  """Pools two small models, so that wrong terms fail before any training."""
  update = statistics.ClientUpdate(
    0, 1, weights.Weights(*np.ones([4, 2], np.float32))
  )
  with np.errstate(all='ignore'):
    statistics.reduced(rule, [(update, 1.0)] * 2, update.model)


def check_weighting(config: Any, weighting: Any) -> None:
  """Weighs a small update, so that a wrong result fails before any training."""
  model = weights.Weights(*np.ones([4, 2], np.float32))
  update = statistics.ClientUpdate(0, 1, model)

  def weigh():
    if weighting.needs_all:
      weighed, _ = weighting.weigh_all([update] * 2, model)
    else:
      weighed, _ = weighting.weigh(update, model)
    return weighed

  user_code.call(f'--weighting={config.weighting}', weigh)


def check_stages(config: Any, stages: tuple, start: tuple) -> None:
  """Checks the server stages of a run."""
  for stage in start:
    if stage.statistics or stage.has_slot:
      raise ValueError(
        f'--start: {stage.name} needs the updates of rounds: select it in '
        '--server_step or --refine.'
      )
  makers = [stage for stage in stages if stage.predictors]
  setters = [stage for stage in stages if stage.sets_mean]
  for several, what in (
    (makers, 'create groups of models'),
    (setters, 'compute the mean of the global model'),
  ):
    if len(several) > 1:
      names = ' and '.join(stage.name for stage in several)
      raise ValueError(
        f'--server_step, --refine and stages of --client_parts: {names} would '
        f'each {what}: select one of them.'
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


def check_privacy(method: Any) -> None:
  """Checks that a private run releases only what the mechanism covers."""
  if not method.privacy.is_private:
    return
  config, spec = method.config, method.result_spec
  flag = f'--privacy={config.privacy}'
  if not method.rule.takes_noise:
    raise ValueError(
      f'--pooling={config.pooling}: no noise is defined for its sums: set '
      f'nwa or ws, or remove {flag}.'
    )
  if not (config.weighting == 'auto' or method.weighting.is_equal):
    raise ValueError(
      f'--weighting={config.weighting}: {flag} gives all clients weight 1: '
      'set equal.'
    )
  if config.checkpoint_every != 1:
    raise ValueError(
      f'--checkpoint_every={config.checkpoint_every}: {flag} allows 1 only. '
      'A round that is trained again after a crash would have the same noise '
      'as before.'
    )
  of_all = [f'--client_parts={part.name}' for part in method.parts
            if part.needs_all_examples]  # fmt: skip
  if method.objective.kl_examples == 'all':
    of_all.append(method.flag('kl_examples'))
  if of_all:
    raise ValueError(
      f'{of_all[0]}: {flag} does not allow it, because the number of all '
      'examples then changes every update: remove it.'
    )
  for stage in method.stages:
    if stage.statistics:
      raise ValueError(
        f'{flag} covers the pooled model only, and the server stage '
        f'{stage.name} needs other sums of updates: remove it, or the client '
        'part that selects it.'
      )
  others = [*spec.extras, *['swag'] * bool(spec.model.factor.shape[0])]
  others += [name for name, kept in spec.memory.items() if kept]
  if others:
    raise ValueError(
      f'{flag} covers the pooled model only, and --client_parts={others[0]} '
      'sends another vector or keeps a memory: remove it.'
    )
  if spec.model.buffers.shape[0]:
    raise ValueError(
      f'--model={config.model}: {flag} does not cover the moving statistics '
      'of batch normalization: set a network without it.'
    )
