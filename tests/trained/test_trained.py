"""A finished run given back: its predictions, posterior and model."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_probability import distributions as tfd
import toys

import bfl_tf
from bfl_tf import config as config_lib
from bfl_tf import runs as runs_lib
from bfl_tf import trained as trained_lib
from bfl_tf import weights
from bfl_tf.federation import building
from bfl_tf.runs import checkpoints
from bfl_tf.trained import exporting

pytestmark = pytest.mark.process

CONFIGS = {
  # Two batches of test examples, raw bytes.
  'flipout': config_lib.Config(
    dataset='digits',
    model='mlp',
    settings={'mlp.hidden_units': (8,), 'flipout.prior_scale': 1},
    num_clients=3,
    num_rounds=2,
    final_num_mc_samples=4,
  ),
  # Moving statistics and dropout, a shape of its own.
  'mc_dropout': config_lib.Config(
    dataset='digits',
    model='resnet8',
    variant='mc_dropout',
    num_clients=2,
    num_rounds=1,
    batch_size=256,
    num_workers=1,
    num_eval_examples=20,
    final_num_mc_samples=2,
  ),
  # Floats; data that no other process can import.
  'deterministic': config_lib.Config(
    dataset='toys:blobs',
    model='logistic',
    variant='deterministic',
    num_clients=3,
    num_rounds=1,
    seed=7,
  ),
}
_FRESH = """
import sys
import numpy as np
import bfl_tf

for run in sys.argv[1:]:
  trained = bfl_tf.load(run)
  prediction = trained.predict(np.load(f'{run}/x_test.npy'))
  np.savez(f'{run}/again.npz', **prediction._asdict())
assert 'toys' not in sys.modules
"""


@pytest.fixture(scope='module')
def runs(tmp_path_factory):
  """Finished runs, and what a fresh process without their data says."""
  paths = {}
  for name, config in CONFIGS.items():
    path = paths[name] = tmp_path_factory.mktemp('runs') / name
    runs_lib.Run(config, path, False, toys.BUILT).play()
    np.save(path / 'x_test.npy', building.dataset(config, {}).test.x)
  subprocess.run(
    [sys.executable, '-c', _FRESH, *map(str, paths.values())],
    cwd=tmp_path_factory.mktemp('elsewhere'),
    check=True,
    timeout=300,
  )
  return paths


@pytest.fixture(scope='module')
def flipout(runs):
  return bfl_tf.load(runs['flipout'])


@pytest.mark.parametrize('name', CONFIGS)
def test_a_fresh_process_says_the_same_bits(runs, name):
  with np.load(runs[name] / 'predictions.npz') as archive:
    recorded = dict(archive)
  del recorded['labels']
  with np.load(runs[name] / 'again.npz') as archive:
    again = dict(archive)
  assert set(again) == set(recorded)
  for key, values in recorded.items():
    assert again[key].dtype == values.dtype
    assert again[key].tobytes() == values.tobytes(), key


def test_what_is_read(runs, flipout):
  assert flipout.config == CONFIGS['flipout']
  assert runs_lib.Task.of(building.dataset(flipout.config, {})) == flipout.task
  assert flipout.task.input_shape == (8, 8, 1)
  assert (flipout.task.dtype, flipout.task.num_classes) == ('uint8', 10)
  state = checkpoints.restore(runs['flipout'] / 'checkpoints')
  assert state.round == 2
  assert toys.same(flipout.weights, state.model)


def test_posterior(runs, flipout):
  q = flipout.posterior
  assert isinstance(q, tfd.MultivariateNormalDiag)
  np.testing.assert_array_equal(q.mean(), flipout.weights.loc)
  np.testing.assert_array_equal(q.stddev(), flipout.weights.scale)
  point = bfl_tf.load(runs['deterministic'])
  np.testing.assert_array_equal(point.posterior.sample(), point.weights.point)


def test_model_has_the_weights_and_takes_what_normalize_makes(runs, flipout):
  held = weights.read(weights.Variables.of(flipout.model))
  np.testing.assert_array_equal(held.loc, flipout.weights.loc)
  # Through softplus and back.
  np.testing.assert_allclose(held.scale, flipout.weights.scale, rtol=1e-5)
  point = bfl_tf.load(runs['deterministic'])
  x = np.load(runs['deterministic'] / 'x_test.npy')
  probs = tf.nn.softmax(point.model(point.normalize(x)))
  np.testing.assert_allclose(point.predict(x).probs, probs, rtol=1e-5)


def test_draws_and_samples_of_ones_own(runs, flipout):
  x = np.load(runs['flipout'] / 'x_test.npy')[:50]
  ours, same, other = (flipout.predict(x, seed=s).probs for s in (1, 1, 2))
  np.testing.assert_array_equal(ours, same)
  assert not np.any((ours == other).all(-1))
  # What was asked changes nothing of what the run itself says.
  recorded = np.load(runs['flipout'] / 'predictions.npz')['probs']
  np.testing.assert_array_equal(flipout.predict(x).probs, recorded[:50])
  one = flipout.predict(x, num_samples=1)
  assert not np.any(one.epistemic_uncertainty)
  assert np.all(one.aleatoric_uncertainty > 0)
  # Images without their one channel, as they are stored.
  np.testing.assert_array_equal(flipout.predict(x[..., 0], seed=1).probs, ours)


@pytest.mark.parametrize(
  'x, what',
  [
    (np.zeros([3, 8, 8, 1]), r'got \(8, 8, 1\) of float32'),
    (np.zeros([3, 8, 8, 3], np.uint8), r'got \(8, 8, 3\) of uint8'),
    (np.zeros([0, 8, 8, 1], np.uint8), 'x must be'),
    (np.zeros([3, 8, 8, 1], np.int64), 'of uint8, as the run was given'),
  ],
)
def test_other_inputs(flipout, x, what):
  with pytest.raises(ValueError, match=what):
    flipout.predict(x)


def test_no_samples(flipout):
  with pytest.raises(ValueError, match='num_samples must be positive, got 0'):
    flipout.predict(np.zeros([1, 8, 8], np.uint8), num_samples=0)


def test_a_run_that_an_ensemble_scored_predicts_with_the_model(tmp_path):
  config = dataclasses.replace(
    CONFIGS['deterministic'],
    refine=('ensemble',),
    predictor='C',
    partition='shards',
    settings={'shards.classes_per_client': 1},
    local_epochs=50,
  )
  runs_lib.Run(config, tmp_path, False, toys.BUILT).play()
  trained = bfl_tf.load(tmp_path)
  x = toys.blobs().test.x
  probs = trained.predict(x).probs
  expected = tf.nn.softmax(trained.model(trained.normalize(x)))
  np.testing.assert_allclose(probs, expected, rtol=1e-5)
  recorded = np.load(tmp_path / 'predictions.npz')['probs']
  assert not np.allclose(probs, recorded, rtol=1e-3)


def test_where_all_weights_are_random_samples_are_draws(tmp_path):
  config = config_lib.Config(
    dataset='toys:blobs', model='logistic', variant='deterministic',
    num_clients=2, num_rounds=1, local_epochs=4, batch_size=15,
    client_parts=('swag',), pooling='product',
    settings={'swag.rank': 2, 'swag.period': 1, 'swag.min_scale': 0.3},
  )  # fmt: skip
  runs_lib.run(config, tmp_path / 'run')
  trained = trained_lib.load(tmp_path / 'run')
  x = toys.blobs().test.x
  mean, few, many = (trained.predict(x, n) for n in (None, 2, 400))
  assert not mean.epistemic_uncertainty.any()
  with pytest.raises(ValueError, match='exported at its mean: leave --num_mc'):
    exporting.export(trained, tmp_path / 'exported', 2)
  assert np.array_equal(few.probs, trained.predict(x, 2).probs)
  assert np.all(few.epistemic_uncertainty > 0)
  # Of logits, which are linear in the weights, the posterior's own moments.
  draws = np.asarray(trained.posterior.sample(400, seed=1))
  inputs = np.asarray(trained.normalize(x))
  logits = inputs @ draws[:, :12].reshape(400, 4, 3) + draws[:, np.newaxis, 12:]
  probs = np.exp(logits - logits.max(-1, keepdims=True))
  probs /= probs.sum(-1, keepdims=True)
  error = np.sqrt(2) * probs.std(0) / 20
  assert np.all(np.abs(many.probs - probs.mean(0)) < 5 * error + 1e-6)


@pytest.mark.parametrize('network', ['squashed', 'squashed_by_lambda'])
def test_somebodys_function_is_in_no_keras_file(tmp_path, network):
  config = config_lib.Config(
    dataset='toys:blobs', model=f'toys:{network}', variant='deterministic',
    num_clients=1, num_rounds=1,
  )  # fmt: skip
  runs_lib.run(config, tmp_path / 'run', show_progress=False)
  trained = trained_lib.load(tmp_path / 'run')
  written = exporting.export(trained, tmp_path / 'exported')
  assert written == list((tmp_path / 'exported').iterdir())
  assert [path.name for path in written] == [exporting.SAVED_MODEL]
