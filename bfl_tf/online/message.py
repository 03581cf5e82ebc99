"""A client joins, changes or leaves by its own message alone (FL-SWAG, 5.3).

The server keeps no update: it has its posterior in natural parameters, and adds
what a newcomer sends, or subtracts what one who leaves sent before and sends
again. Equal to pooling everybody at once but for rounding; `online` is the form
that is equal bit for bit, of any rule.

What is no random weight is none under SWAG; batch normalization's statistics
are an average by sizes, which is undone likewise.

References:
  M. Makni. Deriving FL-SWAG as a one-shot method. 2022, section 5.3.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

import numpy as np

from bfl_tf import seeds, server, statistics
from bfl_tf import weights as weights_lib
from bfl_tf.federation import admission
from bfl_tf.federation import engine as engine_lib
from bfl_tf.federation import experiment as experiment_lib
from bfl_tf.federation import state as state_lib
from bfl_tf.online import natural
from bfl_tf.online import updates as online

# By rule, what of a client's posterior it pools.
_RULES = {
  'product': lambda model: model,
  'conflation': lambda model: model._replace(
    scale=np.sqrt(model.variance()), factor=model.factor[:0]
  ),
}
_SLOT = 'natural'


def apply(
  experiment: experiment_lib.Experiment,
  state: state_lib.State,
  change: online.Change,
) -> state_lib.Round:
  """Makes a change; `state` is still good if that fails.

  Args:
    experiment: of the run.
    state: after the run, or after earlier changes; its kept updates are the
      clients' own copies, of which that of `change.client` alone is read, once
      the server has its natural parameters.
    change: what to do.

  Returns:
    As `updates.apply`: of the clients' models there is no group.

  Raises:
    ValueError: the change cannot be made, the rule is no product, clients
      remember elsewhere, or no positive definite precision is left.
  """
  check(experiment)
  kept = online.members(state)
  change.check(kept, experiment.config.num_clients)
  engine_lib.check_memories(state, experiment.method.result_like)
  number = int(state.slots['keep']['changes']) + 1
  pooled = _RULES[experiment.config.pooling]
  held = state.slots.get(_SLOT) or _all(kept, pooled)
  begin = online.beginning(experiment, state)
  # There unless somebody joins, and alone if nobody else is kept.
  old, new = kept.pop(change.client, None), None
  if old and kept:
    held = _moved(held, old, pooled, natural.subtract, -1)
  memories = {k: v for k, v in state.memories.items() if k != change.client}
  if change.kind != 'remove':
    new, memory = _trained(experiment, begin, change, number)
    held = (
      _moved(held, new, pooled, natural.add, 1) if kept else _first(new, pooled)
    )
    kept[change.client] = new
    if memory:
      memories[change.client] = dict(memory)
  after = state._replace(
    model=_model(held, begin.model, experiment.method.rule.min_scale),
    slots=_slots(state, held, kept, number),
    memories=memories,
  )
  info = {
    'bytes_up': sum(update.num_bytes for update in (old, new) if update),
    'bytes_down': experiment.broadcast(begin).num_bytes if new else 0,
  }
  return state_lib.Round(after, info, _samples(experiment, after, number))


def _slots(state, held, kept, number) -> dict[str, Any]:
  updates = {str(k): server.packed(kept[k]) for k in sorted(kept)}
  keep = {'updates': updates, 'changes': np.int32(number)}
  return state.slots | {_SLOT: held, 'keep': state.slots['keep'] | keep}


def check(experiment: experiment_lib.Experiment) -> None:
  """Raises a ValueError unless one message is enough for the run's rule."""
  config = experiment.config
  if config.pooling not in _RULES or experiment.method.random != 'all':
    raise ValueError(
      f'--form=message is for posteriors over all weights under --pooling='
      f'{" or ".join(_RULES)}, not {config.pooling}: take --form=updates.'
    )
  if config.predictor not in ('', 'S'):
    raise ValueError(
      f"--form=message has no clients' models for --predictor="
      f'{config.predictor}: take --form=updates.'
    )
  for stage in experiment.method.stages:
    if isinstance(stage, server.Keep) or _samples_pooled(stage):
      continue
    raise ValueError(
      f'--form=message pools nothing again for the server stage {stage.name}: '
      'only keep, and an ensemble whose samples are of the pooled posterior, '
      'can follow; take --form=updates.'
    )


def _samples_pooled(stage) -> bool:
  """Whether a stage is an ensemble whose S needs no client's update."""
  if not isinstance(stage, server.Ensemble) or stage.resources.recalibrates:
    return False
  alone = dataclasses.replace(stage, groups='S')
  return 'S' not in stage.predictors or not alone.statistics


def _all(kept, pooled) -> dict[str, Any]:
  """What the server has of a run that has just ended: all that came in."""
  first, *others = (kept[client] for client in sorted(kept))
  held = _first(first, pooled)
  for update in others:
    held = _moved(held, update, pooled, natural.add, 1)
  return held


def _first(update, pooled) -> dict[str, Any]:
  return {
    **natural.of_model(pooled(update.model))._asdict(),
    'buffers': update.model.buffers.astype(np.float64),
    'num_examples': np.int64(update.num_examples),
  }


def _posterior(held) -> natural.Natural:
  return natural.Natural(*(held[name] for name in natural.Natural._fields))


def _moved(
  held: Mapping[str, Any], update, pooled, combine, sign
) -> dict[str, Any]:
  found = combine(_posterior(held), natural.of_model(pooled(update.model)))
  size = int(held['num_examples'])
  share = sign * update.num_examples / (size + sign * update.num_examples)
  buffers = held['buffers'] + share * (update.model.buffers - held['buffers'])
  return {
    **found._asdict(),
    'buffers': buffers,
    'num_examples': np.int64(size + sign * update.num_examples),
  }


def _model(held, like, min_scale) -> weights_lib.Weights:
  found = natural.moments(_posterior(held))
  scale = np.maximum(np.sqrt(found.variance), np.float32(min_scale))
  arrays = found.mean, scale, held['buffers'], found.factor
  loc, scale, buffers, factor = (v.astype(np.float32) for v in arrays)
  return like._replace(loc=loc, scale=scale, buffers=buffers, factor=factor)


def _trained(
  experiment, begin, change, number
) -> tuple[statistics.ClientUpdate, Mapping[str, Any]]:
  """Has the newcomer train, with the draws that `online` gives it."""
  (arrival,) = engine_lib.local(experiment, begin, [change.client], number)
  method = experiment.method
  defect = admission.find_defect(
    arrival,
    method.result_like,
    begin.model,
    method.config.max_update_norm,
    len(experiment.partition[change.client]),
  )
  if defect or arrival.update is None:
    raise ValueError(
      f'--{change.kind}={change.client}: its update was refused, {defect}; '
      'nothing has changed.'
    )
  return arrival.update, arrival.memory


def _samples(experiment, state, number) -> dict[str, Any]:
  """Group S of the new posterior, where the run made one."""
  for stage in experiment.method.stages:
    if isinstance(stage, server.Ensemble) and 'S' in stage.predictors:
      alone = dataclasses.replace(stage, groups='S')
      seed = seeds.named(experiment.config.seed, 'one_message', number)
      return alone(state, state.model, state.model, {}, seed)[2]
  return {}
