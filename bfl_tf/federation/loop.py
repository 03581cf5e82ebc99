"""The round loop: broadcast, train, weigh, pool, step.

There is one. A method of a paper is a combination of the pieces of a `Method`,
never a loop of its own.
"""

import dataclasses
import math
import time
from typing import Any

from absl import logging

from bfl_tf import own, seeds, training
from bfl_tf.config import config as config_lib
from bfl_tf.federation import admission, stopping
from bfl_tf.federation import engine as engine_lib
from bfl_tf.federation import experiment as experiment_lib
from bfl_tf.federation import method as method_lib
from bfl_tf.federation import reduction as reduction_lib
from bfl_tf.federation import state as state_lib


def initial_state(experiment: experiment_lib.Experiment) -> state_lib.Round:
  """Plays the start; what comes out depends on data and seed alone."""
  method = experiment.method
  model = method.initial_weights()
  slots = state_lib.fresh_slots(method.start, model)
  played = state_lib.Round(state_lib.State(0, model, slots, {}), {})
  for stage in method.start:
    seed = seeds.named(method.config.seed, f'start_{stage.name}')
    culprit = f'--start={stage.name}'
    with stopping.blaming(culprit):
      said = stage(played.state, model, model, {}, seed)
    played = _after(method, culprit, played, said)
  slots = state_lib.fresh_slots(method.stages, played.state.model)
  return played._replace(state=played.state._replace(slots=slots))


def federated_round(
  experiment: experiment_lib.Experiment,
  state: state_lib.State,
  engine: engine_lib.Engine = engine_lib.local,
) -> state_lib.Round:
  """Plays one round.

  Args:
    experiment: what to play.
    state: to go on from.
    engine: where clients run.

  Raises:
    stopping.StoppedError: too few clients were good, or a rule, weighting or
      stage was not; `state` is still good.
  """
  started = time.perf_counter()
  method = experiment.method
  clients = sampled(method.config, state.round)
  received = _Received.nothing(method, state.model)
  _ask(received, experiment, state, engine, clients)
  if len(received.traces) < method.config.min_clients:
    again = sorted(received.left_out)
    logging.warning('Too few good updates: clients %s are asked again.', again)
    _ask(received, experiment, state, engine, again)
  _check_enough(method.config, state, received)
  pooled, results, info = received.reduction.finish()
  culprit = f'round {state.round + 1}: --pooling={method.config.pooling}'
  stopping.check_model(culprit, pooled, method.result_like.model)
  info['clients_seconds'] = time.perf_counter() - started
  new = state._replace(
    model=pooled, memories={**state.memories, **received.memories}
  )
  played = _step(method, state, state_lib.Round(new, info), results)
  info = played.info | _describe(received)
  info['bytes_up'] = received.num_bytes
  info['bytes_down'] = received.asked * experiment.broadcast(state).num_bytes
  state = played.state._replace(round=state.round + 1)
  return played._replace(state=state, info=info)


@dataclasses.dataclass
class _Received:
  """What was accepted of a round's arrivals, and why others were not.

  Attributes:
    reduction: of all that was accepted.
    memories: by client, what it is to keep.
    traces: of the accepted.
    left_out: by client, the reason.
    asked: how often a client was sent the broadcast.
    has_shown_traceback: Whether a client's traceback was logged; others are
      likely to be the same.
    num_bytes: that came up.
  """

  reduction: reduction_lib.Reduction
  memories: dict[int, Any] = dataclasses.field(default_factory=dict)
  traces: list[training.Trace] = dataclasses.field(default_factory=list)
  left_out: dict[int, str] = dataclasses.field(default_factory=dict)
  asked: int = 0
  has_shown_traceback: bool = False
  num_bytes: int = 0

  @classmethod
  def nothing(cls, method, reference) -> '_Received':
    config = method.config
    return cls(
      reduction_lib.Reduction(
        method.rule,
        method.weighting,
        method.statistics,
        reference,
        (f'--pooling={config.pooling}', f'--weighting={config.weighting}'),
      )
    )

  def add(self, update, memory) -> None:
    """Takes in what is good."""
    self.reduction.add(update)
    self.traces.append(update.trace)
    self.num_bytes += update.num_bytes
    self.left_out.pop(update.client_id, None)
    if memory:
      self.memories[update.client_id] = memory


def _ask(received, experiment, state, engine, clients) -> None:
  """Takes in what comes of clients; of who sends nothing good, why."""
  method, waiting = experiment.method, set(clients)
  received.asked += len(waiting)
  like = engine_lib.like(engine, method)
  for arrival in engine(experiment, state, clients):
    client = arrival.client
    if client not in waiting:
      logging.warning('Client %r was not asked, or not again.', client)
      continue
    waiting.remove(client)
    defect = admission.find_defect(
      arrival,
      like,
      state.model,
      method.config.max_update_norm,
      len(experiment.partition[client]),
    )
    if defect:
      received.left_out[client] = defect
      logging.warning('Client %d is rejected: %s.', client, defect)
      if arrival.failure and not received.has_shown_traceback:
        received.has_shown_traceback = True
        logging.warning('%s', own.traceback_of(arrival.failure))
      continue
    received.add(arrival.update, arrival.memory)
  received.left_out |= dict.fromkeys(waiting, 'nothing came')


def _check_enough(config, state, received):
  if len(received.traces) >= config.min_clients:
    return
  why = stopping.reasons(received.left_out)
  raise stopping.TooFewClientsError(
    f'round {state.round + 1}: {len(received.traces)} accepted updates are '
    f'fewer than --min_clients={config.min_clients} ({why}).'
  )


def _step(
  method: method_lib.Method,
  before: state_lib.State,
  played: state_lib.Round,
  results: dict[Any, Any],
) -> state_lib.Round:
  """Has the chain of stages rewrite the pooled model."""
  pooled = played.state.model
  for stage in method.stages:
    started = time.perf_counter()
    # By its name: a stage more in the chain changes no other's draws.
    seed = seeds.named(method.config.seed, f'stage_{stage.name}', before.round)
    culprit = f'round {before.round + 1}: the server stage {stage.name}'
    with stopping.blaming(culprit):
      said = stage(played.state, before.model, pooled, results, seed)
    played = _after(method, culprit, played, said)
    played.info[f'{stage.name}_seconds'] = time.perf_counter() - started
  return played


def _after(method, culprit, played, said) -> state_lib.Round:
  """Adds what a stage said: the state, columns, and groups if it makes any."""
  if not (isinstance(said, tuple) and isinstance(said[0], state_lib.State)):
    raise stopping.CulpritError(
      f'{culprit} must return (state, info) or (state, info, groups), got '
      f'{type(said).__name__}.'
    )
  said = state_lib.Round(*said)
  stopping.check_model(culprit, said.state.model, method.result_like.model)
  return state_lib.Round(
    said.state,
    {**played.info, **said.info},
    said.predictors or played.predictors,
  )


def sampled(config: config_lib.Config, round_index: int) -> list[int]:
  """Returns the numbers of the clients that a round draws, from 0."""
  if not config.clients_per_round:
    return list(range(config.num_clients))
  generator = seeds.generator(config.seed, 'client_sampling', round_index)
  return sorted(
    generator.choice(
      config.num_clients, config.clients_per_round, replace=False
    ).tolist()
  )


def _describe(received) -> dict[str, Any]:
  traces, left_out = received.traces, received.left_out
  return {
    # Exactly rounded, so in any order of arrival the same.
    'train_loss': math.fsum(trace.loss for trace in traces) / len(traces),
    'local_steps': int(sum(trace.steps for trace in traces)),
    'clients_pooled': len(traces),
    'clients_left_out': len(left_out),
    'left_out': ' '.join(map(str, sorted(left_out))),
    'left_out_reasons': stopping.reasons(left_out),
    **_reported(traces),
  }


def _reported(traces) -> dict[str, float]:
  """The means over clients of what their parts report."""
  return {
    column: math.fsum(trace.report[column] for trace in traces) / len(traces)
    for column in traces[0].report
  }
