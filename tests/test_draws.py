"""Tests that all seeds of a run are distinct.

A wrapper around TensorFlow's stateless generators records each seed of a draw,
in the graphs that a run executes.
"""

import contextlib

import numpy as np
import of_papers
import tensorflow as tf
import tf_keras

from bfl_tf import federation, seeds, training
from bfl_tf.config.config import Config
from bfl_tf.models import layers as own
from experiments.papers.noniid_techniques import gradient_noise

# Position of the seed among the arguments of each generator.
_GENERATORS = (
  (seeds, 'bits', 1),
  (tf.random, 'stateless_uniform', 1),
  (tf.random, 'stateless_normal', 1),
  (tf.random, 'stateless_categorical', 2),
  (tf.random.experimental, 'stateless_shuffle', 1),
  (tf.nn.experimental, 'stateless_dropout', 2),
)


def _spied(draw, place, seen):
  def spied(*args, **kwargs):
    seed = kwargs['seed'] if 'seed' in kwargs else args[place]
    tf.numpy_function(lambda s: seen.append(tuple(s.tolist())), [seed], [])
    return draw(*args, **kwargs)

  return spied


@contextlib.contextmanager
def spy(monkeypatch):
  """Yields two lists of seeds: those of draws, and those that are split."""
  drawn, hashed = [], []
  with monkeypatch.context() as patch:
    for module, name, place in _GENERATORS:
      patch.setattr(module, name, _spied(getattr(module, name), place, drawn))
    patch.setattr(seeds, 'split', _spied(seeds.split, 0, hashed))
    yield drawn, hashed


def stochastic(variant, input_shape, num_classes):
  """Returns a network with Flipout and dropout, for 4x4 images."""
  del variant
  kernel = {'kernel_initializer': 'he_normal', 'initial_scale': 0.1}
  inputs = tf_keras.Input(input_shape)
  x = own.Conv2DFlipout(2, 3, **kernel)(inputs)
  x = own.MCDropout(0.5)(tf_keras.layers.Flatten()(x))
  x = own.DenseFlipout(4, **kernel)(x)
  return tf_keras.Model(inputs, own.DenseFlipout(num_classes, **kernel)(x))


def images():
  """Returns sixty images of three classes."""
  y = np.arange(60, dtype=np.int32) % 3
  x = np.random.default_rng(0).integers(0, 256, [60, 4, 4, 1], np.uint8)
  return x, y, x[:30], y[:30]


class Noisier(gradient_noise.GradientNoise):
  """Another part that draws in the same hook."""

  name = 'noisier'


def execute(**changes):
  """Runs two rounds of three clients, each evaluated with samples."""
  config = Config(**{
    'dataset': 'test_draws:images', 'model': 'test_draws:stochastic',
    'augment': True, 'num_clients': 3, 'batch_size': 8, 'local_epochs': 2,
    'num_workers': 1, **changes,
  })  # fmt: skip
  experiment = federation.Experiment.build(config)
  state = federation.initial_state(experiment).state
  for round_index in range(2):
    state = federation.federated_round(experiment, state).state
    training.predict(
      experiment.workers,
      state.model,
      experiment.dataset.test.x,
      seed=[round_index, 17],
      num_samples=3,
    )


def assert_distinct(monkeypatch, steps, others=0, predicted=2, **changes):
  """Checks the number of draws and that their seeds are distinct."""
  with spy(monkeypatch) as (drawn, hashed):
    execute(**changes)
  # A round has 18 steps, 6 orders and 3 samples, each with a draw of noise and
  # one of dropout. The probe for a softmax runs once, without a scope; each
  # layer draws its own seed.
  probed = 13 if predicted else 0
  assert len(drawn) == 2 * (18 * steps + 6 + 3 * predicted + others) + probed
  assert len(set(drawn)) == len(drawn)
  assert not set(drawn) & set(hashed)


def test_every_seed_of_a_run_is_distinct(monkeypatch):
  # Draws of a step: a crop, two parts, the noise, three layers with two signs,
  # and dropout.
  parts = of_papers.GRADIENT_NOISE, 'test_draws:Noisier'
  assert_distinct(monkeypatch, 1 + 2 + 1 + 3 * 2 + 1, client_parts=parts)


def test_replicas_draw_with_distinct_seeds(monkeypatch):
  # There is no client part, because its draws are the same on every replica.
  mirrored = {'distribution': 'mirrored', 'num_workers': 2}
  assert_distinct(monkeypatch, 1 + 2 * 8, **mirrored)


def test_independent_initializations_have_distinct_seeds(monkeypatch):
  # As above with one part, and three kernels per client and round.
  parts = of_papers.INDEPENDENT_INIT, of_papers.GRADIENT_NOISE
  assert_distinct(monkeypatch, 1 + 1 + 8, 3 * 3, client_parts=parts)


def test_weight_samples_of_an_optimizer_have_distinct_seeds(monkeypatch):
  # Draws of a step: a crop, the part and the four tensors of the network.
  network = {'model': 'mlp', 'variant': 'deterministic', 'predicted': 0}
  chosen = {
    'client_optimizer': 'ivon',
    'client_parts': (of_papers.GRADIENT_NOISE,),
  }
  assert_distinct(monkeypatch, 1 + 1 + 4, **network, **chosen)


def test_draws_of_the_curvature_have_distinct_seeds(monkeypatch):
  # A step draws a crop. Then 3 clients draw labels for 3 batches, twice.
  network = {'model': 'mlp', 'variant': 'deterministic', 'predicted': 0}
  settings = {'laplace.curvature_samples': 2}
  chosen = {'client_optimizer': 'laplace', 'settings': settings}
  assert_distinct(monkeypatch, 1, 3 * 3 * 2, **network, **chosen)
