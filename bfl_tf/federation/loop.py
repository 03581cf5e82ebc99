"""The round loop: broadcast, train, weigh, pool, step.

There is one. A method of a paper is a combination of the pieces of an
`Experiment`, never a loop of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
import math
import time
from typing import Any, NamedTuple

from absl import logging
import numpy as np
import tensorflow as tf

from bfl_tf import seeds, statistics, training
from bfl_tf import weights as weights_lib
from bfl_tf.federation import experiment as experiment_lib


class State(NamedTuple):
  """All that a resume needs.

  Attributes:
    round: rounds done.
    model: the global model.
    slots: by server stage, what it carries from round to round; a client part
      that needs a stage is sent that stage's slot.
    memories: by client id and client part, what the client keeps.
    predictors: by name, groups of models that a stage made to be scored with
      the round; the one thing that a checkpoint leaves out, since no later
      round reads it.
  """

  round: int
  model: weights_lib.Weights
  slots: dict[str, Any]
  memories: dict[int, dict[str, Any]]
  predictors: Mapping[str, Sequence[weights_lib.Weights]] = {}


class TooFewClientsError(RuntimeError):
  """Fewer updates than `--min_clients` could be accepted."""


def initial_state(
  experiment: experiment_lib.Experiment,
) -> tuple[State, dict[str, Any]]:
  """Plays the start; what comes out depends on data and seed alone.

  Returns:
    The state before the first round, and columns of `metrics.csv`.
  """
  model = experiment.initial_weights()
  state = State(0, model, fresh_slots(experiment.start, model), {})
  info: dict[str, Any] = {}
  for stage in experiment.start:
    seed = seeds.named(experiment.config.seed, f'start_{stage.name}')
    state, more = stage(state, model, model, {}, seed)
    info |= more
  return state._replace(slots=fresh_slots(experiment.stages, state.model)), info


def federated_round(
  experiment: experiment_lib.Experiment, state: State
) -> tuple[State, dict[str, Any]]:
  """Plays one round.

  Returns:
    The next state, and columns of `metrics.csv`.

  Raises:
    TooFewClientsError: `state` is still good.
  """
  started = time.perf_counter()
  reduction = _Reduction(experiment, state.model)
  memories, traces, left_out = dict(state.memories), [], {}
  bytes_up = 0
  for update, memory in _train(experiment, state):
    bytes_up += update.num_bytes
    defect = find_defect(update, state.model)
    if defect:
      left_out[update.client_id] = defect
      logging.warning('Client %d is left out: %s.', update.client_id, defect)
      continue
    reduction.add(update)
    traces.append(update.trace)
    if memory:
      memories[update.client_id] = memory
  if len(traces) < experiment.config.min_clients:
    reasons = '; '.join(f'{k}: {why}' for k, why in sorted(left_out.items()))
    raise TooFewClientsError(
      f'round {state.round}: {len(traces)} accepted updates are fewer than '
      f'--min_clients={experiment.config.min_clients} ({reasons}).'
    )
  pooled, results, info = reduction.finish()
  info['clients_seconds'] = time.perf_counter() - started
  new = state._replace(model=pooled, memories=memories, predictors={})
  for stage in experiment.stages:
    started = time.perf_counter()
    # By its name: a stage more in the chain changes no other's draws.
    seed = seeds.named(
      experiment.config.seed, f'stage_{stage.name}', state.round
    )
    new, more = stage(new, state.model, pooled, results, seed)
    more[f'{stage.name}_seconds'] = time.perf_counter() - started
    info |= more
  info |= _describe(traces, left_out)
  info['bytes_up'] = bytes_up
  info['bytes_down'] = (len(traces) + len(left_out)) * (
    state.model.num_bytes + _num_bytes(_shared(experiment, state))
  )
  return new._replace(round=state.round + 1), info


def fresh_slots(stages, model) -> dict[str, Any]:
  """What stages carry before they have been called."""
  return {s.name: s.init(model) for s in stages if hasattr(s, 'init')}


def find_defect(
  update: statistics.ClientUpdate, like: weights_lib.Weights
) -> str | None:
  """Says why an update must not be pooled, or returns None."""
  if update.num_examples <= 0:
    return f'it trained on {update.num_examples} examples'
  for name, vector, expected in zip(like._fields, update.model, like):
    if vector.shape != expected.shape:
      return f'its {name} has shape {vector.shape}, not {expected.shape}'
  vectors = {**update.model._asdict(), **update.extras}
  for name, vector in vectors.items():
    if not np.all(np.isfinite(vector)):
      return f'its {name} is not finite'
  if np.any(update.model.scale <= 0):
    return 'its scale is not positive'
  return None


class _Reduction:
  """Weighs updates and reduces every statistic over them, in one pass."""

  def __init__(self, experiment, reference):
    needed = [s for stage in experiment.stages for s in stage.statistics]
    # Statistics are frozen dataclasses: a dict reduces equal ones once.
    self._sums = dict.fromkeys([experiment.rule, *needed])
    self._rule, self._weighting = experiment.rule, experiment.weighting
    self._reference = reference
    self._waiting: list[statistics.ClientUpdate] = []
    self._guards = 0

  def add(self, update):
    if hasattr(self._weighting, 'all'):
      self._waiting.append(update)
      return
    weight, guards = self._weighting.one(update, self._reference)
    self._guards += guards
    self._accumulate(update, weight)

  def finish(self):
    if self._waiting:
      updates = sorted(self._waiting, key=lambda update: update.client_id)
      weights, self._guards = self._weighting.all(updates, self._reference)
      for update, weight in zip(updates, weights):
        self._accumulate(update, weight)
    results, info = {}, {'weight_guards': self._guards}
    for statistic, sums in self._sums.items():
      results[statistic], more = statistic.finalize(sums, self._reference)
      info |= more
    return results[self._rule], results, info

  def _accumulate(self, update, weight):
    for statistic, sums in self._sums.items():
      share = statistic.accumulate(update, weight, self._reference)
      self._sums[statistic] = (
        share if sums is None else statistics.merge(sums, share)
      )


def _train(experiment, state) -> Iterator[tuple[statistics.ClientUpdate, Any]]:
  """Yields updates as clients finish; the longest begin first."""
  jobs = [
    (client, _job(experiment, state, client))
    for client in _sampled(experiment.config, state.round)
  ]
  jobs.sort(key=lambda job: -len(job[1].indices) * job[1].epochs)

  def work(worker, job):
    client, task = job
    result = worker.train(task)
    update = statistics.ClientUpdate(
      client, len(task.indices), result.model, result.extra, result.trace
    )
    return update, result.memory

  return training.in_parallel(experiment.workers, jobs, work)


def _job(experiment, state, client):
  config, round_index = experiment.config, state.round
  fresh = {
    part.name: part.init_memory(state.model)
    for part in experiment.parts
    if hasattr(part, 'init_memory')
  }
  return training.Job(
    start=state.model,
    indices=experiment.partition[client],
    epochs=np.int32(_local_epochs(config, round_index, client)),
    learning_rate=np.float32(
      experiment.schedule(
        config.client_learning_rate, round_index, config.num_rounds
      )
    ),
    seed=seeds.named(config.seed, 'local_training', round_index, client),
    shared=_shared(experiment, state),
    memory=state.memories.get(client, fresh),
  )


def _shared(experiment, state) -> dict[str, Any]:
  return {
    part.name: state.slots[part.needs]
    for part in experiment.parts
    if part.needs
  }


def _num_bytes(structure) -> int:
  return sum(np.asarray(leaf).nbytes for leaf in tf.nest.flatten(structure))


def _sampled(config, round_index) -> list[int]:
  if not config.clients_per_round:
    return list(range(config.num_clients))
  generator = seeds.generator(config.seed, 'client_sampling', round_index)
  return sorted(
    generator.choice(
      config.num_clients, config.clients_per_round, replace=False
    ).tolist()
  )


def _local_epochs(config, round_index, client) -> int:
  if config.early_local_epochs and round_index < config.early_rounds:
    return config.early_local_epochs
  if not config.min_local_epochs:
    return config.local_epochs
  generator = seeds.generator(config.seed, 'local_epochs', round_index, client)
  return int(
    generator.integers(config.min_local_epochs, config.local_epochs + 1)
  )


def _describe(traces, left_out) -> dict[str, Any]:
  return {
    # Exactly rounded, so in any order of arrival the same.
    'train_loss': math.fsum(trace.loss for trace in traces) / len(traces),
    'local_steps': int(sum(trace.steps for trace in traces)),
    'clients_pooled': len(traces),
    'clients_left_out': len(left_out),
    'left_out': ' '.join(map(str, sorted(left_out))),
  }
