"""Tests of features of a network and of the binary that writes them."""

import dataclasses
import pathlib

import binaries
import numpy as np
import pytest
from scipy import special
import tensorflow as tf
import tf_keras
import toys

from bfl_tf import analysis, data, runs
from bfl_tf.analysis import features
from bfl_tf.config.config import Config

KERAS = tf_keras.Sequential([tf_keras.layers.Dense(2, input_shape=(3,))])
calls = []


def halved(x):
  """A network in NumPy, which is interrupted in its 31st call."""
  calls.append(len(x))
  if len(calls) == 31:
    raise KeyboardInterrupt
  return x / 2


def constant(x):
  return np.zeros([1, 2])


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  """A pre-trained network, and its directory."""
  path = tmp_path_factory.mktemp('features') / 'run'
  config = Config(
    dataset='toys:halves', variant='deterministic',
    num_workers=1, num_clients=1,
    num_rounds=1, settings={'mlp.hidden_units': (7,)},
  )  # fmt: skip
  runs.Run(config, path, False, draw_plots=False).execute()
  return path


def test_rows_that_the_network_has_seen_are_left_out_and_sites_are_kept(run):
  trained, whole, names = analysis.load(run), toys.blobs(), ('x', 'y', 'z')
  both = whole.train._replace(ids=np.repeat(['a', 'b', 'c'], 50))
  mixed = dataclasses.replace(whole, train=both, test=both, class_names=names)
  found = features.of_dataset(trained, mixed)
  for end in ('train', 'test'):
    assert np.array_equal(found[f'y_{end}'], whole.train.y[100:])
    assert found[f'x_{end}'].shape == (50, 7)
  for name in ('client_ids', 'client_ids_test'):
    assert found[name].tolist() == ['c'] * 50
  assert tuple(found['class_names']) == names
  # The last layer on the features gives the predictions of the network.
  kernel, bias = trained.model.trainable_variables[-2:]
  probs = special.softmax(found['x_test'] @ kernel.numpy() + bias.numpy(), -1)
  expected = trained.predict(whole.train.x[100:]).probs
  np.testing.assert_allclose(probs, expected, atol=1e-5)


@pytest.mark.process
def test_the_binary_writes_a_data_set(run, tmp_path):
  path = tmp_path / 'features.npz'
  flags = [f'--run={run}', '--dataset=toys:blobs', f'--output={path}']
  ((code, out, error),) = binaries.drive(
    'experiments.features', [flags], pathlib.Path(__file__).parents[1]
  )
  assert code == 0, error
  assert '50 examples for clients and 60 to test, 7 features each' in out
  dataset = data.load(str(path))
  assert dataset.num_classes == 3 and dataset.train.x.shape == (50, 7)


def test_the_data_set_of_the_run_keeps_its_test_examples_held_out(tmp_path):
  path = tmp_path / 'own.npz'
  x = np.random.default_rng(0).normal(size=(100, 3))
  np.savez(path, x=x, y=np.arange(100) % 2)
  config = Config(dataset=str(path), test_fraction=0.1, validation_split=0.1)
  found = features.read(config, config.dataset)
  assert found.test.y.size == 10 and found.train.y.size == 90
  other = features.read(config, 'wine')
  assert other.name == 'wine' and other.test.y.size > 10


def test_data_without_new_rows_and_stochastic_variants_are_rejected(run):
  trained = analysis.load(run)
  with pytest.raises(ValueError, match='--dataset=toys:halves'):
    features.of_dataset(trained, data.load(trained.config.dataset))
  stochastic = analysis.Trained(
    trained.config.replace(variant='flipout'), trained.task, trained.weights
  )
  with pytest.raises(ValueError, match='--variant'):
    features.of_dataset(stochastic, toys.blobs())


def test_columns_are_matched_by_name_to_those_of_the_run(run):
  trained, whole = analysis.load(run), toys.blobs()
  columns = tuple(map(data.Feature, 'abcd'))
  trained.task = dataclasses.replace(trained.task, features=columns)
  train = whole.train.take(slice(0, 100))
  seen = dataclasses.replace(whole, train=train, features=columns)
  train, test = (s._replace(x=s.x[:, ::-1]) for s in (whole.train, whole.test))
  turned = dataclasses.replace(whole, train=train, test=test)
  found = features.of_dataset(
    trained, dataclasses.replace(turned, features=columns[::-1]), seen
  )
  expected = features.of_dataset(analysis.load(run), whole)
  np.testing.assert_array_equal(found['x_train'], expected['x_train'])
  others = tuple(map(data.Feature, 'abce'))
  with pytest.raises(ValueError, match='columns'):
    features.of_dataset(
      trained, dataclasses.replace(turned, features=others), seen
    )


def test_an_interrupted_computation_continues_after_its_last_part(tmp_path):
  x = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32)
  with pytest.raises(KeyboardInterrupt):
    features.computed('test_features:halved', x, tmp_path)
  # 30 batches of 32 examples are a part, which is read again.
  found = features.computed('test_features:halved', x, tmp_path)
  assert calls[31:] == [32, 8]
  np.testing.assert_array_equal(found, x / 2)
  # Other examples, and another network, have other parts.
  features.computed('test_features:halved', x[1:41], tmp_path)
  assert calls[33:] == [32, 8]
  found = features.computed('test_features:KERAS', x, tmp_path)
  np.testing.assert_allclose(found, KERAS(tf.constant(x)), rtol=1e-5, atol=1e-6)
  with pytest.raises(ValueError, match='--network=test_features:constant'):
    features.computed('test_features:constant', x, tmp_path)
