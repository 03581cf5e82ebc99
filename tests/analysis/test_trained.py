"""Tests of loaded runs: predictions, posterior, model and errors."""

import fake
import numpy as np
import pytest
from scipy import special
import tensorflow as tf
from tensorflow_probability import distributions as tfd
import toys

import bfl_tf
from bfl_tf import weights
from bfl_tf.analysis import exporting
from bfl_tf.config.config import Config
from bfl_tf.federation import run_data
from bfl_tf.runs import Run

CONFIGS = {
  # Two batches of test examples, of uint8 images.
  'flipout': Config(
    dataset='digits', num_clients=3, num_workers=1, num_rounds=2,
    num_eval_examples=20, final_num_mc_samples=4,
    settings={'mlp.hidden_units': (8,), 'flipout.prior_scale': 1},
  ),
  # A network with moving statistics.
  'deterministic': Config(
    dataset='toys:blobs', model='toys:normalized', variant='deterministic',
    num_clients=3, num_workers=1, num_rounds=1, seed=7,
  ),
}  # fmt: skip


def execute(config, path):
  Run(config, path, False, toys.BUILT, draw_plots=False).execute()
  return bfl_tf.load(path)


@pytest.fixture(scope='module')
def runs(tmp_path_factory):
  """Loaded finished runs and their directories, by name."""
  path = tmp_path_factory.mktemp('runs')
  return {
    name: (execute(config, path / name), path / name)
    for name, config in CONFIGS.items()
  }


@pytest.fixture(scope='module')
def flipout(runs):
  return runs['flipout'][0]


def inputs_of(trained):
  return run_data.load(trained.config).test.x


def recorded(path):
  with np.load(path / 'predictions.npz') as archive:
    return {name: archive[name] for name in archive if name != 'labels'}


@pytest.mark.parametrize('name', CONFIGS)
def test_predictions_equal_the_last_evaluation_bit_for_bit(runs, name):
  trained, path = runs[name]
  found = trained.predict(inputs_of(trained))._asdict()
  assert list(found) == list(recorded(path))
  for name, values in recorded(path).items():
    assert found[name].dtype == values.dtype
    assert found[name].tobytes() == values.tobytes(), name


def test_posterior_samples_and_network_have_the_weights_of_the_run(
  runs, flipout
):
  q = flipout.posterior
  assert isinstance(q, tfd.MultivariateNormalDiag)
  np.testing.assert_array_equal(q.mean(), flipout.weights.loc)
  np.testing.assert_array_equal(q.stddev(), flipout.weights.scale)
  held = weights.read(weights.Variables.of(flipout.model))
  np.testing.assert_array_equal(held.loc, flipout.weights.loc)
  # The scales pass through softplus and its inverse.
  np.testing.assert_allclose(held.scale, flipout.weights.scale, rtol=1e-5)
  drawn = np.stack([one.weights.loc for one in flipout.sample(50, seed=1)])
  z = (drawn - flipout.weights.loc) / flipout.weights.scale
  assert abs(z.mean()) < 5 / np.sqrt(z.size)
  assert abs(z.var() - 1) < 5 * np.sqrt(2 / z.size)
  (again,) = flipout.sample(1, seed=1)
  np.testing.assert_array_equal(again.weights.loc, drawn[0])
  # A sampled model is a point, so that its predictions have no other noise.
  x = inputs_of(flipout)[:50]
  assert again.predict(x).epistemic_uncertainty.max() < 1e-9
  point, _ = runs['deterministic']
  np.testing.assert_array_equal(point.posterior.sample(), point.weights.point)


def test_predictions_depend_on_the_seed_and_the_number_of_samples(
  runs, flipout
):
  x = inputs_of(flipout)[:50]
  ours, same, other = (flipout.predict(x, seed=s).probs for s in (1, 1, 2))
  np.testing.assert_array_equal(ours, same)
  assert not np.any((ours == other).all(-1))
  # These calls do not change the default predictions.
  expected = recorded(runs['flipout'][1])['probs']
  # Some processors round float32 sums differently in batches of other sizes.
  np.testing.assert_allclose(flipout.predict(x).probs, expected[:50], rtol=1e-5)
  one = flipout.predict(x, num_samples=1)
  assert not np.any(one.epistemic_uncertainty)
  assert np.all(one.aleatoric_uncertainty > 0)
  # Images may lack the single channel.
  np.testing.assert_array_equal(flipout.predict(x[..., 0], seed=1).probs, ours)


def test_a_run_scored_by_an_ensemble_predicts_with_its_model(tmp_path):
  config = CONFIGS['deterministic'].replace(
    server_parts=('ensemble',),
    predictor='C',
    partition='shards',
    local_epochs=50,
    **{'shards.classes_per_client': 1},
  )
  trained = execute(config, tmp_path)
  x = toys.blobs().test.x
  probs = trained.predict(x).probs
  expected = tf.nn.softmax(trained.model(trained.normalize(x)))
  np.testing.assert_allclose(probs, expected, rtol=1e-5)
  assert not np.allclose(probs, recorded(tmp_path)['probs'], rtol=1e-3)


def test_samples_of_a_swag_run_are_draws_from_its_posterior(tmp_path):
  config = Config(
    dataset='toys:blobs', model='logistic', variant='deterministic',
    num_workers=1, num_clients=2, num_rounds=1, local_epochs=4, batch_size=15,
    client_parts=('swag',), pooling='product',
    settings={'swag.rank': 2, 'swag.period': 1, 'swag.min_scale': 0.3},
  )  # fmt: skip
  trained = execute(config, tmp_path / 'run')
  x = toys.blobs().test.x
  mean, few, many = (trained.predict(x, n) for n in (1, 2, 100))
  assert not mean.epistemic_uncertainty.any()
  # By default, samples predict, also in the run's scores.
  default = trained.predict(x)
  assert np.array_equal(default.probs, recorded(tmp_path / 'run')['probs'])
  assert np.all(default.epistemic_uncertainty > 0)
  with pytest.raises(ValueError, match='--num_mc_samples'):
    exporting.export(trained, tmp_path / 'exported', 2)
  assert np.array_equal(few.probs, trained.predict(x, 2).probs)
  assert np.all(few.epistemic_uncertainty > 0)
  # Quantiles are over the samples of the prediction.
  parts = [sample.mean for sample in trained.samples(x, 2)]
  np.testing.assert_allclose(np.mean(parts, 0), few.probs, atol=1e-6)
  ends = trained.quantiles(x, (0, 1), 2)
  np.testing.assert_array_equal(ends, [np.min(parts, 0), np.max(parts, 0)])
  # Logits are linear in the weights, so the posterior gives their moments.
  draws = np.asarray(trained.posterior.sample(100, seed=1))
  inputs = np.asarray(trained.normalize(x))
  logits = inputs @ draws[:, :12].reshape(100, 4, 3) + draws[:, np.newaxis, 12:]
  probs = special.softmax(logits, -1)
  error = np.sqrt(2) * probs.std(0) / 10
  assert np.all(np.abs(many.probs - probs.mean(0)) < 5 * error + 1e-6)


def test_an_incomplete_run_directory_is_rejected_with_the_reason(tmp_path):
  fake.execute(tmp_path)
  assert bfl_tf.load(tmp_path).config == fake.CONFIG
  for name, reason in (
    ('checkpoint.npz', 'checkpoint'),
    ('summary.json', 'unfinished'),
    ('flags.txt', '--output_dir'),
  ):
    (tmp_path / name).unlink()
    with pytest.raises(ValueError, match=reason):
      bfl_tf.load(tmp_path)
