"""Small data, workers, experiments and parts that several tests share."""

import dataclasses
import functools
from typing import ClassVar

import numpy as np
import tensorflow as tf
import tf_keras

from bfl_tf import data as data_lib
from bfl_tf import federation, models, seeds, statistics, training, weights
from bfl_tf.config.config import Config
from bfl_tf.federation import engine as engine_lib
from bfl_tf.server import pooling

CENTRES = np.array([[2, 0, 0, 1], [0, 2, 0, -1], [0, 0, 2, 0]])


def blobs() -> data_lib.Dataset:
  """Three Gaussian classes in four dimensions: 150 to train, 60 to test."""
  y = np.arange(210) % 3
  x = CENTRES[y] + np.random.default_rng(0).normal(size=[210, 4])
  return data_lib.from_arrays('blobs', x[:150], y[:150], x[150:], y[150:])


def halves():
  """The blobs with the first hundred examples to train on."""
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
  **settings,
) -> training.Worker:
  """A worker on the blobs as they are; a logistic regression by default."""
  build = build or functools.partial(
    models.build, 'logistic', variant=variant, input_shape=(4,), num_classes=3
  )
  return training.Worker(
    strategy or training.strategies(1)[0],
    build,
    data,
    training.TrainingConfig(optimizer, batch_size, **settings),
  )


def start(trainer: training.Worker) -> weights.Weights:
  """Weights to start from: those of a fresh worker's own model."""
  tensors = weights.read(trainer.training.variables)
  return weights.Weights(*(tensor.numpy() for tensor in tensors))


def task(begin, indices=range(50), epochs=1, rate=0.1, seed=0, **more):
  """One client's training from `begin`."""
  return training.ClientTask(
    begin,
    np.array(indices, np.int32),
    np.int32(epochs),
    np.float32(rate),
    seeds.named(seed, 'test'),
    **more,
  )


def experiment(**changes) -> federation.Experiment:
  """Six clients of unequal sizes, deterministic by default."""
  config = {
    'dataset': 'toys:blobs',
    'model': 'logistic',
    'variant': 'deterministic',
    'num_clients': 6,
    'partition': 'dirichlet',
    'dirichlet.min_examples': 5,
    'client_optimizer': 'sgd',
    'client_learning_rate': 0.1,
  } | changes
  return federation.Experiment.build(Config.of(config), BUILT)


def rounds(pieces: federation.Experiment, num_rounds: int = 2, **engine):
  """The start, then every round."""
  played = [federation.initial_state(pieces)]
  for _ in range(num_rounds):
    before = played[-1].state
    played.append(federation.federated_round(pieces, before, **engine))
  return played


def play(pieces: federation.Experiment, num_rounds: int = 2, **engine):
  """The state after so many rounds, and each one's columns but the seconds."""
  _, *played = rounds(pieces, num_rounds, **engine)
  return played[-1].state, [
    {k: v for k, v in each.info.items() if 'seconds' not in k}
    for each in played
  ]


def groups(pieces: federation.Experiment):
  """The state after one round, and the groups that it made."""
  _, last = rounds(pieces, 1)
  return last.state, last.predictors


def changed(pieces: federation.Experiment, **changes):
  """The same pieces under a config that differs."""
  config = dataclasses.replace(pieces.config, **changes)
  method = dataclasses.replace(pieces.method, config=config)
  return dataclasses.replace(pieces, method=method)


def bits(vectors) -> list[bytes]:
  """What two results share if they are the same to the last bit."""
  return [np.asarray(vector).tobytes() for vector in vectors]


def same(*nested) -> bool:
  """Whether nested structures of arrays are the same, bit for bit."""
  first, *others = ([*map(np.shape, flat), *bits(flat)]
                    for flat in map(tf.nest.flatten, nested))  # fmt: skip
  return all(first == other for other in others)


class Engine(engine_lib.Engine):
  """An engine made of a function of an experiment, a state and clients."""

  def __init__(self, function):
    self.function = function

  def __call__(self, *arguments):
    return self.function(*arguments)


@dataclasses.dataclass(frozen=True)
class Stack(pooling.Rule):
  """A rule that does not stream: the first client, with everybody's factor."""

  def accumulate(self, update, weight, reference):
    entry = {update.client_id: update.model}
    return statistics.single(weight, {}, {'models': entry})

  def finalize(self, sums, reference):
    table = sums.tables['models']
    models = [table[client] for client in sorted(table)]
    factor = np.concatenate([model.factor for model in models])
    return models[0]._replace(factor=factor), {}


@dataclasses.dataclass(frozen=True)
class Idle(training.Part):
  """A client part that does nothing."""

  name = 'idle'


@dataclasses.dataclass(frozen=True)
class Counter(Idle):
  """Remembers how often its client trained and the steps; sends both."""

  name: ClassVar[str] = 'counter'

  def init_memory(self, model):
    return {'rounds': np.int32(0), 'steps': np.zeros([50], np.int32)}

  def begin(self, start, shared, memory):
    return memory

  def finish(self, model, carry, trace):
    steps = tf.one_hot(carry['rounds'], 50, dtype=tf.int32) * trace.steps
    memory = {'rounds': carry['rounds'] + 1, 'steps': carry['steps'] + steps}
    extra = tf.cast(tf.stack([memory['rounds'], trace.steps]), tf.float32)
    return model, extra, memory


def normalized_inputs() -> tf_keras.Model:
  """A softmax regression behind batch normalization."""
  layers = tf_keras.layers
  return tf_keras.Sequential(
    [
      tf_keras.Input((4,)),
      layers.BatchNormalization(momentum=0.9),
      layers.Dense(3),
    ]
  )


@dataclasses.dataclass(frozen=True)
class Follower(Idle):
  """Remembers the slot that it was sent of the stage that it needs."""

  name: ClassVar[str] = 'follower'
  server_stage = 'momentum'

  def init_memory(self, model):
    return np.zeros([model.mean.size])

  def begin(self, start, shared, memory):
    return shared

  def finish(self, model, carry, trace):
    return model, tf.zeros([0]), carry


def normalized(input_shape, num_classes):
  """A small network with batch normalization."""
  return tf_keras.Sequential(
    [
      tf_keras.Input(input_shape),
      tf_keras.layers.Dense(5),
      tf_keras.layers.BatchNormalization(momentum=0.5),
      tf_keras.layers.Dense(num_classes),
    ]
  )
