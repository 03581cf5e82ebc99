"""The round loop: broadcast, train, weigh, pool, step.

All methods share this loop. The method of a paper is a combination of the
pieces of a `Method`.
"""

import math
import time
from typing import Any

from absl import logging

from bfl_tf import seeds
from bfl_tf.config.config import Config
from bfl_tf.declare import user_code
from bfl_tf.federation import admission, reduction, stopping
from bfl_tf.federation import client as client_lib
from bfl_tf.federation import state as state_lib
from bfl_tf.federation.engine import Engine, Local
from bfl_tf.federation.experiment import Experiment
from bfl_tf.federation.method import Method


def initial_state(experiment: Experiment) -> state_lib.Round:
  """Runs the stages of `--start` on the initial model."""
  method = experiment.method
  model = method.initial_weights()
  result = state_lib.Round(state_lib.State(0, model, {}, {}), {})
  for stage in method.start:
    seed = seeds.named(method.config.seed, f'start_{stage.name}')
    component = f'--start={stage.name}'
    with stopping.wrap_errors(component):
      returned = stage(result.state, model, model, {}, seed)
    result = _after(method, component, result, returned)
  slots = method.fresh_slots(result.state.model)
  return result._replace(state=result.state._replace(slots=slots))


def federated_round(
  experiment: Experiment,
  state: state_lib.State,
  engine: Engine = Local(),  # noqa: B008
) -> state_lib.Round:
  """Runs one round.

  Raises:
    stopping.StoppedError: Too few updates are accepted, or a rule, weighting or
      stage fails; `state` is unchanged.
  """
  started = time.perf_counter()
  method = experiment.method
  config = method.config
  # With the noise of another run, the difference of both would not be private.
  seed, clients = config.seed, sampled(config, state.round)
  if method.privacy.is_private:
    seed = experiment.private_seed
    clients = method.privacy.sample(seed, state.round)
  reduced = reduction.Reduction(
    method.privacy.protect(method.rule, state.model, seed, state.round),
    method.weighting,
    method.statistics,
    state.model,
    (f'--pooling={config.pooling}', f'--weighting={config.weighting}'),
  )
  admit = _admission(method, state, engine)
  rejected, num_clipped = _request(
    reduced, admit, experiment, state, engine, clients
  )
  num_requests, num_valid = len(clients), len(reduced.traces)
  # A Poisson sample may be smaller than any minimum. Under privacy, one client
  # must not decide whether others are requested again, or whether a run stops.
  min_clients = min(config.min_clients, len(clients))
  if method.privacy.is_private:
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
  pooled, results, info = reduced.finish()
  component = f'round {state.round + 1}: --pooling={config.pooling}'
  stopping.check_model(component, pooled, method.result_spec.model)
  info['clients_seconds'] = time.perf_counter() - started
  memories = state.memories | reduced.memories
  slots = {**state.slots, **admit.slots()}
  new = state._replace(model=pooled, memories=memories, slots=slots)
  result = _step(method, state, state_lib.Round(new, info), results)
  info = result.info | _describe(reduced.traces, rejected)
  info['clients_clipped'] = num_clipped
  if method.privacy.is_private:
    # The sample of clients is secret, and these columns name its members.
    info |= {'rejected': '', 'rejected_reasons': ''}
  info |= method.privacy.spent(state.round + 1)
  info['bytes_up'] = reduced.num_bytes
  info['bytes_down'] = num_requests * experiment.broadcast(state).num_bytes
  state = result.state._replace(round=state.round + 1)
  return result._replace(state=state, info=info)


def _admission(method, state, engine) -> admission.Admission:
  return admission.Admission(
    engine.expected_spec(method),
    state.model,
    method.config.max_update_norm,
    method.parts,
    method.layout.is_variance(),
    method.inference.keeps_scale,
    state.slots.get(admission.SLOT),
  )


def _request(
  reduced, admit, experiment, state, engine, clients
) -> tuple[dict[int, str], int]:
  """Accumulates valid updates."""
  method, waiting, num_clipped = experiment.method, set(clients), 0
  rejected: dict[int, str] = {}
  has_shown_traceback = False
  for client, update in engine(experiment, state, clients):
    if client not in waiting:
      logging.warning('Client %r was not requested, or replied twice.', client)
      continue
    waiting.remove(client)
    num_examples = len(experiment.partition[client])
    work = client_lib.work(method, state.round, client, num_examples)
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


def _step(
  method: Method,
  before: state_lib.State,
  result: state_lib.Round,
  results: dict[Any, Any],
) -> state_lib.Round:
  """Applies the chain of stages to the pooled model."""
  pooled = result.state.model
  for stage in method.stages:
    started = time.perf_counter()
    # The seed has the stage's name, so that it is independent of other stages.
    seed = seeds.named(method.config.seed, f'stage_{stage.name}', before.round)
    component = f'round {before.round + 1}: the server stage {stage.name}'
    with stopping.wrap_errors(component):
      returned = stage(result.state, before.model, pooled, results, seed)
    result = _after(method, component, result, returned)
    result.info[f'{stage.name}_seconds'] = time.perf_counter() - started
  return result


def _after(method, component, result, returned) -> state_lib.Round:
  """Adds the result of a stage: state, columns, and groups of models."""
  if not (
    isinstance(returned, tuple) and isinstance(returned[0], state_lib.State)
  ):
    raise stopping.ComponentError(
      f'{component} must return (state, info) or (state, info, groups), got '
      f'{type(returned).__name__}.'
    )
  returned = state_lib.Round(*returned)
  stopping.check_model(
    component, returned.state.model, method.result_spec.model
  )
  stopping.check_columns(component, returned.info)
  # A stage may leave out the slots of other stages.
  slots = {**result.state.slots, **returned.state.slots}
  return state_lib.Round(
    returned.state._replace(slots=slots),
    {**result.info, **returned.info},
    returned.predictors or result.predictors,
  )


def sampled(config: Config, round_index: int) -> list[int]:
  """Returns the clients that a round of a run without privacy samples."""
  return config.privacy_mechanism.sample(config.seed_of_data, round_index)


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
