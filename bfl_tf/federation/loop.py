"""The round loop: broadcast, train, weigh, pool, step.

All methods share this loop.
"""

import math
import time
from typing import Any

from absl import logging
import numpy as np

from bfl_tf import parts, seeds, weights
from bfl_tf.declare import user_code
from bfl_tf.federation import admission, reduction, stopping
from bfl_tf.federation import client as client_lib
from bfl_tf.federation import state as state_lib
from bfl_tf.federation.engine import Engine, Local
from bfl_tf.federation.experiment import Experiment
from bfl_tf.federation.plan import Plan


def initial_state(experiment: Experiment) -> state_lib.Round:
  """Runs the parts of `--start` on the initial model."""
  plan = experiment.plan
  model = experiment.initial_weights()
  result = state_lib.Round(state_lib.State(0, model, {}, {}), {})
  for part in plan.start:
    seed = seeds.named(plan.config.seed, f'start_{part.name}')
    ctx = _context(experiment, result.state, seed)
    name = f'--start={part.name}'
    result = _step(plan, name, part, result, {}, ctx)
  slots = fresh_slots(plan, result.state.model)
  return result._replace(state=result.state._replace(slots=slots))


def fresh_slots(plan: Plan, model: weights.Weights) -> dict[str, Any]:
  """Returns the slots before the first round, by part and for the bounds.

  The bounds of a private run must not depend on other clients.
  """
  bounds = {admission.SLOT: admission.fresh_history()}
  return plan.fresh_slots(model) | ({} if plan.privacy.is_private else bounds)


def federated_round(
  experiment: Experiment,
  state: state_lib.State,
  engine: Engine = Local(),  # noqa: B008
) -> state_lib.Round:
  """Runs one round.

  Raises:
    stopping.StoppedError: Too few updates are accepted, or a part or the
      weighting fails; `state` is unchanged.
  """
  started = time.perf_counter()
  plan = experiment.plan
  config = plan.config
  seed = config.seed_of_data
  # With the noise of another run, the difference of both would not be private.
  if plan.privacy.is_private:
    seed = experiment.private_seed
  clients = plan.privacy.sample(seed, state.round)
  pool = plan.privacy.protect(plan.pool, state.model, seed, state.round)
  number = state.round + 1
  of_pool = f'round {number}: {plan.flag_of_pool}'
  servers = {
    f'round {number}: the server part {part.name}': part
    for part in plan.servers
  }
  summed = {name: part for name, part in servers.items() if part.has('terms')}
  reduced = reduction.Reduction(
    {of_pool: pool, **summed},
    plan.weighting,
    state.model,
    f'--weighting={config.weighting}',
  )
  admit = _admission(plan, state, engine)
  rejected, num_clipped = _request(
    reduced, admit, experiment, state, engine, clients
  )
  num_requests, num_valid = len(clients), len(reduced.traces)
  # A Poisson sample may be smaller than any minimum. Under privacy, one client
  # must not decide whether others are requested again, or whether a run stops.
  min_clients = min(config.min_clients, len(clients))
  if plan.privacy.is_private:
    min_clients = 0
  if num_valid < min_clients:
    again = sorted(rejected)
    logging.warning(
      'Only %d valid updates; requesting clients %s again.', num_valid, again
    )
    rejected, more = _request(reduced, admit, experiment, state, engine, again)
    num_clipped += more
    num_requests += len(again)
  if len(reduced.traces) < min_clients:
    raise stopping.TooFewClientsError(
      f'round {state.round + 1}: {len(reduced.traces)} accepted updates are '
      f'fewer than --min_clients={min_clients} '
      f'({stopping.reasons(rejected)}).'
    )
  sums, info = reduced.finish()
  memories = state.memories | reduced.memories
  slots = {**state.slots, **admit.slots()}
  result = state_lib.Round(state._replace(memories=memories, slots=slots), info)
  ctx = _context(experiment, state, None)
  result = _step(plan, of_pool, pool, result, sums.get(of_pool, {}), ctx)
  result.info['clients_seconds'] = time.perf_counter() - started
  pooled = result.state.model
  for name, part in servers.items():
    begun = time.perf_counter()
    # The seed has the part's name, so that it is independent of other parts.
    of_part = seeds.named(config.seed, f'stage_{part.name}', state.round)
    ctx = _context(experiment, state, of_part, pooled)
    result = _step(plan, name, part, result, sums.get(name, {}), ctx)
    result.info[f'{part.name}_seconds'] = time.perf_counter() - begun
  info = result.info | _describe(reduced.traces, rejected)
  info['clients_clipped'] = num_clipped
  if plan.privacy.is_private:
    # The sample of clients is secret, and these columns name its members.
    info |= {'rejected': '', 'rejected_reasons': ''}
  info |= plan.privacy.spent(state.round + 1)
  info['bytes_up'] = reduced.num_bytes
  info['bytes_down'] = num_requests * experiment.broadcast(state).num_bytes
  state = result.state._replace(round=state.round + 1)
  return result._replace(state=state, info=info)


def _admission(plan, state, engine) -> admission.Admission:
  return admission.Admission(
    engine.expected_spec(plan),
    state.model,
    plan.config.max_update_norm,
    plan.locals,
    plan.layout.is_variance(),
    plan.inference.keeps_scale,
    state.slots.get(admission.SLOT),
  )


def _request(
  reduced, admit, experiment, state, engine, clients
) -> tuple[dict[int, str], int]:
  """Accumulates valid updates."""
  plan, waiting, num_clipped = experiment.plan, set(clients), 0
  rejected: dict[int, str] = {}
  has_shown_traceback = False
  for client, update in engine(experiment, state, clients):
    if client not in waiting:
      logging.warning('Client %r was not requested, or replied twice.', client)
      continue
    waiting.remove(client)
    num_examples = len(experiment.partition[client])
    work = client_lib.work(plan, state.round, client, num_examples)
    valid, defect, is_clipped = admit.admit(client, update, work)
    defect = defect or reduced.add(valid)
    if not defect:
      num_clipped += is_clipped
      continue
    rejected[client] = defect
    logging.warning('Client %d is rejected: %s.', client, defect)
    # Tracebacks of other clients are likely to be the same.
    if isinstance(update, BaseException) and not has_shown_traceback:
      has_shown_traceback = True
      logging.warning('%s', user_code.traceback_of(update))
  return rejected | dict.fromkeys(waiting, 'no reply'), num_clipped


def _context(experiment, state, seed, pooled=None) -> parts.ServerContext:
  return parts.ServerContext(
    broadcast=state.model,
    pooled=pooled,
    round=state.round,
    num_rounds=experiment.config.num_rounds,
    seed=seed,
    tools=experiment.tools,
  )


def _step(
  plan: Plan,
  name: str,
  part: parts.Server,
  result: state_lib.Round,
  sums: dict[str, Any],
  ctx: parts.ServerContext,
) -> state_lib.Round:
  """Applies a server part, and adds its slot, columns and groups."""
  state = result.state
  # Values that are not finite are rejected below, with the name.
  with (
    np.errstate(invalid='ignore', divide='ignore'),
    stopping.wrap_errors(name),
  ):
    outcome = part.step(state.model, sums, state.slots.get(part.name), ctx)
  if not isinstance(outcome, parts.Outcome):
    raise stopping.ComponentError(
      f'{name} must return an Outcome, got {type(outcome).__name__}.'
    )
  stopping.check_model(name, outcome.model, plan.result_spec.model)
  stopping.check_columns(name, outcome.report)
  slots = dict(state.slots)
  if part.has('slot'):
    slots[part.name] = outcome.slot
  return state_lib.Round(
    state._replace(model=outcome.model, slots=slots),
    {**result.info, **outcome.report},
    outcome.groups or result.predictors,
  )


def _describe(traces, rejected) -> dict[str, Any]:
  return {
    'train_loss': _mean([trace.loss for trace in traces]),
    'local_steps': int(sum(trace.steps for trace in traces)),
    'clients_pooled': len(traces),
    'clients_rejected': len(rejected),
    'rejected': ' '.join(map(str, sorted(rejected))),
    'rejected_reasons': stopping.reasons(rejected),
    **{
      column: _mean([trace.report[column] for trace in traces])
      for column in (traces[0].report if traces else ())
    },
  }


def _mean(values) -> float:
  # fsum is exactly rounded, so the order of arrival does not matter.
  return math.fsum(values) / (len(values) or math.nan)
