"""Small data, workers, experiments and parts that several tests share."""

import csv
import dataclasses
import functools

import numpy as np
import tensorflow as tf
import tf_keras

from bfl_tf import data as data_lib
from bfl_tf import (
  federation,
  models,
  parts,
  seeds,
  statistics,
  training,
  weights,
)
from bfl_tf.config.config import Config
from bfl_tf.federation import client as client_lib
from bfl_tf.federation import engine as engine_lib
from bfl_tf.methods import fedavgm

CENTRES = np.array([[2, 0, 0, 1], [0, 2, 0, -1], [0, 0, 2, 0]])


def blobs() -> data_lib.Dataset:
  """Returns three Gaussian classes: 150 training and 60 test examples."""
  y = np.arange(210) % 3
  x = CENTRES[y] + np.random.default_rng(0).normal(size=[210, 4])
  return data_lib.from_arrays('blobs', x[:150], y[:150], x[150:], y[150:])


def halves():
  """Returns the blobs with only the first hundred training examples."""
  whole = blobs()
  return *whole.train.take(slice(0, 100))[:2], *whole.test[:2]


TRAIN = blobs().train
BUILT: dict = {}  # Compiled workers, shared by all experiments on the blobs.
DATA = training.Data(
  *TRAIN[:2], np.zeros(4, np.float32), np.ones(4, np.float32)
)


def worker(
  build=None,
  variant='deterministic',
  strategy=None,
  optimizer=training.SGD(),  # noqa: B008
  batch_size=16,
  data=DATA,
  likelihood=training.Categorical(),  # noqa: B008
  **settings,
) -> training.Worker:
  """Returns a worker on the blobs; a logistic regression by default."""
  build = build or functools.partial(
    models.build, 'logistic', variant=variant, input_shape=(4,), num_classes=3
  )
  return training.Worker(
    strategy or training.strategies(1)[0],
    build,
    data,
    training.TrainingConfig(optimizer, batch_size, likelihood, **settings),
  )


def inference(optimizer) -> training.Inference:
  return training.OptimizerInference(
    optimizer.compiled(), 'all', optimizer=optimizer
  )


def start(trainer: training.Worker) -> weights.Weights:
  """Returns the weights of a new worker's model."""
  tensors = weights.read(trainer.training.variables)
  return weights.Weights(*(tensor.numpy() for tensor in tensors))


def task(
  begin, indices=range(50), epochs=1, rate=0.1, seed=0, batch_size=16, **more
):
  # `rate` is a number, or one for each step.
  steps = epochs * -(-len(indices) // batch_size)
  return training.ClientTask(
    begin,
    np.array(indices, np.int32),
    np.float32(rate * np.ones(steps)),
    seeds.named(seed, 'test'),
    **more,
  )


def visited(part, start, path, index=0):
  """Calls the hooks of a part, without a model; its training visits a path.

  Returns the mean after the last step, the sent model, and the report.
  """
  vectors = (tf.constant(v, tf.float32) for v in (start, start, [], []))
  begin = weights.Weights(*vectors)
  _, carry = part.begin(context(begin), None)
  for number, mean in enumerate(tf.constant(path, tf.float32)):
    step = training.Step(
      tf.constant(number), 0.1, None, 9.0, num_steps=len(path), round=index
    )
    moved, carry = part.after(mean, carry, step)
  trace = training.Trace(np.int32(len(path)), np.float32(1), np.float32(1))
  sent = part.end(begin.replace_mean(mean), carry, trace)
  found = moved, sent.model, dict(sent.report)
  return tf.nest.map_structure(np.asarray, found)


def context(broadcast, shared=None, start=None):
  begin = broadcast if start is None else start
  return parts.Context(broadcast, begin, shared)


def experiment(**changes) -> federation.Experiment:
  """Returns an experiment with six deterministic clients of unequal sizes.

  It has one worker, because each worker compiles its own functions.
  """
  config = {
    'num_workers': 1, 'dataset': 'toys:blobs', 'model': 'logistic',
    'variant': 'deterministic', 'num_clients': 6, 'partition': 'dirichlet',
    'dirichlet.min_examples': 5, 'client_optimizer': 'sgd',
    'client_learning_rate': 0.1,
  } | changes  # fmt: skip
  return federation.Experiment.build(Config.of(config), BUILT)


def trace(plan, round_index: int, client: int, size: int) -> training.Trace:
  """Returns the trace that the server expects, with loss 1."""
  work = client_lib.work(plan, round_index, client, size)
  rates = np.float32(work.rates.sum())
  return training.Trace(np.int32(work.steps), rates, np.float32(1))


def rounds(pieces: federation.Experiment, num_rounds: int = 2, **engine):
  """Returns the start and the results of every round."""
  played = [federation.initial_state(pieces)]
  for _ in range(num_rounds):
    before = played[-1].state
    played.append(federation.federated_round(pieces, before, **engine))
  return played


def execute(pieces: federation.Experiment, num_rounds: int = 2, **engine):
  """Returns the final state and the columns of each round without seconds."""
  _, *played = rounds(pieces, num_rounds, **engine)
  return played[-1].state, [
    {k: v for k, v in each.info.items() if 'seconds' not in k}
    for each in played
  ]


def groups(pieces: federation.Experiment):
  _, last = rounds(pieces, 1)
  return last.state, last.predictors


def changed(pieces: federation.Experiment, **changes):
  config = dataclasses.replace(pieces.config, **changes)
  plan = dataclasses.replace(pieces.plan, config=config)
  return dataclasses.replace(pieces, plan=plan)


def table(path) -> list[dict[str, str]]:
  with open(path, newline='', encoding='utf-8') as file:
    return list(csv.DictReader(file))


def write_table(path, rows) -> str:
  """Writes a .csv file, whose first row has the names of the columns."""
  with open(path, 'w', newline='', encoding='utf-8') as file:
    csv.writer(file).writerows(rows)
  return str(path)


def model(loc=(), scale=(), point=(), buffers=(), *factor):
  """Returns weights; a number is the scale of all."""
  scale = np.broadcast_to(scale, np.shape(loc))
  vectors = loc, scale, point, buffers, *factor
  return weights.Weights(*(np.array(v, np.float32) for v in vectors))


def stepped(part, pooled, broadcast, slot=None, sums=None, tools=None):
  seed = np.zeros(2, np.int32)
  ctx = parts.ServerContext(broadcast, pooled, seed=seed, tools=tools)
  return part.step(pooled, sums or {}, slot, ctx)


def sums(part, weighed, broadcast):
  """Returns the sums of the terms of updates, given with their weights."""
  shares = [statistics.collected(part, u, w, broadcast) for u, w in weighed]
  return statistics.values(functools.reduce(statistics.merge, shares))


def pooled(part, weighed, broadcast):
  """Returns the step of a part without a slot, from weighed updates."""
  own = sums(part, weighed, broadcast)
  return stepped(part, broadcast, broadcast, sums=own)


def bits(vectors) -> list[bytes]:
  return [np.asarray(vector).tobytes() for vector in vectors]


def same(*nested) -> bool:
  """Returns whether nested structures of arrays are identical, bit for bit."""
  first, *others = ([*map(np.shape, flat), *bits(flat)]
                    for flat in map(tf.nest.flatten, nested))  # fmt: skip
  return all(first == other for other in others)


class Engine(engine_lib.Engine):
  """An engine from a function of experiment, state and clients."""

  def __init__(self, function):
    self.function = function

  def __call__(self, *arguments):
    return self.function(*arguments)


@dataclasses.dataclass(frozen=True)
class Stack(parts.Pool):
  """A pooling rule that returns the first model with the factors of all."""

  def terms(self, update, weight, broadcast):
    return {'models': parts.Keep(update.model)}

  def step(self, model, sums, slot, ctx):
    factors = [model.factor for model in sums['models']]
    first = sums['models'][0]
    return parts.Outcome(first._replace(factor=np.concatenate(factors)))


@dataclasses.dataclass(frozen=True)
class Idle(parts.Local):
  name = 'idle'


@dataclasses.dataclass(frozen=True)
class Counter(parts.Local):
  """A client part that stores and sends its numbers of rounds and steps."""

  name = 'counter'

  def memory(self, model):
    return {'rounds': np.int32(0), 'steps': np.zeros([50], np.int32)}

  def begin(self, ctx, memory):
    return parts.Start(ctx.start, memory)

  def end(self, model, carry, trace):
    steps = tf.one_hot(carry['rounds'], 50, dtype=tf.int32) * trace.steps
    memory = {'rounds': carry['rounds'] + 1, 'steps': carry['steps'] + steps}
    extra = tf.cast(tf.stack([memory['rounds'], trace.steps]), tf.float32)
    return parts.Sent(model, memory, extra=extra)


def normalized_inputs() -> tf_keras.Model:
  layers = tf_keras.layers
  return tf_keras.Sequential(
    [
      tf_keras.Input((4,)),
      layers.BatchNormalization(momentum=0.9),
      layers.Dense(3),
    ]
  )


@dataclasses.dataclass(frozen=True)
class Follower(parts.Local, fedavgm.Momentum):
  """Server momentum whose client half stores the velocity."""

  name = 'follower'

  def memory(self, model):
    return np.zeros([model.mean.size])

  def begin(self, ctx, memory):
    return parts.Start(ctx.start, ctx.shared)

  def end(self, model, carry, trace):
    return parts.Sent(model, carry)

  def shared(self, slot):
    return slot


def normalized(input_shape, num_classes):
  return tf_keras.Sequential(
    [
      tf_keras.Input(input_shape),
      tf_keras.layers.Dense(5),
      tf_keras.layers.BatchNormalization(momentum=0.5),
      tf_keras.layers.Dense(num_classes),
    ]
  )
