"""Runs without training, whose updates and scores are random, for tests.

`execute` completes a run with all its files in a tenth of a second. It is for
tests of rounds and directories.
"""

import zlib

import numpy as np
import pytest
import tensorflow as tf
import toys

from bfl_tf import metrics, runs, seeds, statistics, training
from bfl_tf.config.config import Config
from bfl_tf.federation import evaluation
from bfl_tf.federation.engine import Reply
from experiments import outcomes

CONFIG = Config(
  dataset='toys:blobs',
  model='logistic',
  variant='deterministic',
  num_clients=5,
  clients_per_round=3,
  client_parts=('toys:Counter',),  # This part has a memory.
  server_parts=('momentum',),  # This part has a slot.
  num_rounds=4,
  num_workers=1,
)
BUILT: dict = {}
outcome = outcomes.of


class Killed(BaseException):
  """An exception that no code handles, like a signal."""


@toys.Engine
def engine(experiment, state, clients):
  """Yields the reply of every client, in the order of the request."""
  for client in clients:
    yield reply(experiment, state, client)


def reply(experiment, state, client) -> Reply:
  """Returns a valid update, which depends on the broadcast and the memory."""
  plan, indices = experiment.plan, experiment.partition[client]
  rng = seeds.generator(plan.config.seed, 'fake', state.round, client)
  like = plan.result_spec
  kept = plan.fresh_memory(state.model) | state.memories.get(client, {})
  memory = tf.nest.map_structure(lambda array: array + 1, kept)
  memory = tf.nest.map_structure(_as, memory, like.memory)
  mean = state.model.mean
  model = state.model.replace_mean(mean + rng.normal(0, 0.1, mean.shape))
  trace = tf.nest.map_structure(lambda spec: _drawn(spec, rng), like.trace)
  expected = toys.trace(plan, state.round, client, len(indices))
  trace = expected._replace(loss=trace.loss, report=trace.report)
  # The column train_loss depends on the whole memory.
  loss = trace.loss + sum(map(np.sum, tf.nest.flatten(memory)))
  trace = trace._replace(loss=np.float32(loss))
  extras = tf.nest.map_structure(lambda spec: _drawn(spec, rng), like.extras)
  return client, statistics.ClientUpdate(
    client, len(indices), model, extras, trace, memory
  )


def evaluate(experiment, played, last) -> evaluation.RoundScores:
  """Returns scores that depend on every bit of the model's mean."""
  del last
  labels = experiment.dataset.test.y
  rng = np.random.default_rng(zlib.crc32(played.state.model.mean.tobytes()))
  predictive = training.Predictive(
    rng.dirichlet(np.ones(experiment.dataset.num_classes), len(labels)),
    *rng.random([3, len(labels)]),
  )
  return evaluation.RoundScores(
    {name: float(rng.random()) for name in metrics.SCORES}, predictive, None
  )


def run(path, config=CONFIG, engine=engine, **options) -> runs.Run:
  """Returns a run without training, plots and output."""
  options = {'draw_plots': False} | options
  return runs.Run(config, path, False, BUILT, engine=engine, **options)


def execute(path, config=CONFIG, **options):
  """Completes a fake run; returns its summary."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(evaluation, 'evaluate', evaluate)
    return run(path, config, **options).execute()


def train(path, config=CONFIG):
  """Completes a run with real training and scores; returns its summary."""
  return runs.Run(config, path, False, BUILT, draw_plots=False).execute()


def stop(patch, owner, name, call, after=False, error=Killed):
  """Raises an error before or after the given call of a function."""
  original, calls = getattr(owner, name), []

  def stopping(*args, **kwargs):
    calls.append(name)
    if len(calls) == call and not after:
      raise error
    result = original(*args, **kwargs)
    if len(calls) == call:
      raise error
    return result

  patch.setattr(owner, name, stopping)


def stopped(path, *where, error=Killed, execute=execute, config=CONFIG, **how):
  """Runs until an error of `stop`; returns the error."""
  with pytest.MonkeyPatch.context() as patch:
    stop(patch, *where, error=error, **how)
    with pytest.raises(error) as caught:
      execute(path, config)
  return caught.value


def _as(array, spec):
  return np.asarray(array, spec.dtype.as_numpy_dtype)


def _drawn(spec, rng):
  """Returns small positive numbers of a shape and type."""
  return _as(rng.integers(1, 9, spec.shape), spec)
