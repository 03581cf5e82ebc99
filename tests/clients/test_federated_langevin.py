"""Tests of federated Langevin dynamics and of the samples of its chain."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import toys

import bfl_tf
from bfl_tf import metrics, models, parts, runs, training
from bfl_tf.analysis import loading, uncertainty
from bfl_tf.methods import langevin
from bfl_tf.server import pooling
from experiments.papers.fair import scores

CLIENTS = (range(10), range(10, 50), range(50, 100))
WEIGHTS = {
  'size': (pooling.WEIGHTINGS['size'](), np.array([0.1, 0.4, 0.5])),
  'equal': (pooling.WEIGHTINGS['equal'](), np.full(3, 1 / 3)),
}


def part(weighting='size', sampled=0, **settings):
  run = parts.RunFacts(3, sampled, weighting=WEIGHTS[weighting][0])
  return langevin.Langevin(run=run, **settings)


def sent(worker, start, rate=0.1, first=0):
  """Returns the means after one step of each client on all its examples."""
  return np.stack([
    worker.train(
      toys.task(start, CLIENTS[k], rate=rate, seed=first + k, all_examples=100)
    ).model.mean
    for k in range(3)
  ])  # fmt: skip


def step(k):
  """Returns a client's step, with its own seed."""
  size = float(len(CLIENTS[k]))
  return training.Step(0, 0.1, tf.constant([0, k]), size, all_examples=100.0)


@pytest.mark.parametrize('weighting', WEIGHTS)
def test_without_noise_a_step_is_that_of_the_posterior_of_all(weighting):
  own = part(weighting, temperature=0.0, prior_scale=0.5)
  gradients, mean = np.random.default_rng(0).normal(size=[2, 3, 15])
  mean = np.float32(mean[0])
  found = WEIGHTS[weighting][1] @ [
    own.gradient(gradients[k], mean, (), step(k)) for k in range(3)
  ]
  expected = [0.1, 0.4, 0.5] @ gradients + mean / (0.5**2 * 100)
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
  assert np.array_equal(own.after(mean, (), step(0))[0], mean)


@pytest.mark.parametrize(
  ('weighting', 'which'),
  [('size', (0, 1, 2)), ('equal', (0, 2)), ('equal', (1,))],
)
def test_the_noise_of_the_average_is_that_of_langevin(weighting, which):
  own = part(weighting, len(which) % 3)
  zeros = tf.zeros([40_000])
  noise = np.stack([own.after(zeros, (), step(k))[0] for k in which])
  weight = WEIGHTS[weighting][1][list(which)]
  mean = weight @ noise / weight.sum()
  assert np.var(mean) == pytest.approx(2 * 0.1 / 100, rel=0.03)


@pytest.mark.slow
def test_the_chain_samples_the_posterior_of_a_linear_regression():
  """Unequal clients and one local step, against the exact posterior."""
  rng, scale = np.random.default_rng(0), 0.5
  x = rng.normal(size=[100, 2]) @ np.array([[1.0, 0.6], [0.0, 0.8]])
  y = x @ [1.0, -1.0] + 0.3 + scale * rng.normal(size=100)
  inputs = np.c_[x, np.ones(100)]
  precision = inputs.T @ inputs / scale**2 + np.eye(3)
  exact = np.linalg.inv(precision)
  mean = exact @ inputs.T @ y / scale**2
  data = training.Data(
    np.float32(x),
    np.float32(y),
    np.zeros(2, np.float32),
    np.ones(2, np.float32),
  )
  build = functools.partial(
    models.build, 'logistic', variant='deterministic', input_shape=(2,),
    num_classes=1,
  )  # fmt: skip
  worker = toys.worker(
    build, data=data, batch_size=100, parts=(part(),),
    likelihood=training.Gaussian((0.0, 1.0), 'known', scale),
  )  # fmt: skip
  model, chain = toys.start(worker), []
  for number in range(20_500):
    steps = sent(worker, model, 0.01, 3 * number)
    model = model.replace_mean(np.float32(WEIGHTS['size'][1] @ steps))
    chain.append(model.mean)
  samples = np.array(chain[500:], np.float64)
  size = bfl_tf.startup.tfp.mcmc.effective_sample_size(samples).numpy()
  error = samples.std(0) / np.sqrt(size)
  assert np.all(np.abs(samples.mean(0) - mean) < 3 * error)
  found = np.cov(samples.T)
  np.testing.assert_allclose(np.diag(found), np.diag(exact), rtol=0.1)
  assert np.sign(found[0, 1]) == np.sign(exact[0, 1])


def test_samples_are_spread_over_the_rounds_after_the_burn_in():
  changes = {'server_parts': ('keep_samples',), 'num_rounds': 10}
  changes |= {'keep_samples.number': 3, 'keep_samples.burn_in': 0.4}
  pieces = toys.experiment(**changes)
  played = toys.rounds(pieces, 10)
  counts = [each.info['chain_samples'] for each in played[1:]]
  assert counts == [0, 0, 0, 0, 0, 1, 1, 2, 2, 3]
  (part,), last = pieces.plan.servers, played[-1].state
  kept = part.stored(last.slots['keep_samples'], last.model)
  for found, place in zip(kept, (6, 8, 10)):
    assert np.array_equal(found.mean, played[place].state.model.mean)
  for number, num_rounds in ((7, 10), (10**9, 2 * 10**9)):
    changes |= {'keep_samples.number': number, 'num_rounds': num_rounds}
    with pytest.raises(ValueError, match=r'keep_samples\.number'):
      toys.experiment(**changes)


def test_a_loaded_run_predicts_with_its_samples(tmp_path):
  config = toys.experiment(
    server_parts=('keep_samples',), num_rounds=6, predictor='chain',
    calibration_fraction=0.2,
    **{'keep_samples.number': 3},
  ).config  # fmt: skip
  path = tmp_path / 'run'
  runs.Run(config, path, False, toys.BUILT, draw_plots=False).execute()
  stored = np.load(tmp_path / 'run' / 'predictions.npz')
  trained = bfl_tf.load(tmp_path / 'run')
  found = trained.predict(toys.blobs().test.x)
  assert len(trained.members) == 3
  np.testing.assert_array_equal(found.probs, stored['probs'])
  np.testing.assert_array_equal(
    found.epistemic_uncertainty, stored['epistemic_uncertainty']
  )
  assert np.any(found.epistemic_uncertainty > 0)
  # Unusual examples are detected by the disagreement of the samples.
  other = uncertainty.OutOfDistribution('near', 'x', 9 * toys.blobs().test.x)
  detected = scores.detection(toys.blobs(), trained, [other])
  assert detected['near_epistemic'] != 0.5
  # The fitted temperature is that of the samples, not of the global model.
  held = loading.load_run(tmp_path / 'run').calibration
  fitted = metrics.fit_temperature(trained.predict(held.x).probs, held.y)
  assert trained.temperature == pytest.approx(fitted)
  alone = trained.replace(trained.weights).predict(held.x).probs
  assert trained.temperature != metrics.fit_temperature(alone, held.y)
