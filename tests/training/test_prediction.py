"""Tests of predictions: streamed moments and reproducibility."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import toys

from bfl_tf import models, seeds, training
from bfl_tf.training import predictive

SEED = seeds.named(0, 'test')
# Inputs of three batches, the last one partial.
X = np.random.default_rng(1).normal(size=[600, 4]).astype(np.float32)


def streamed(samples):
  welford = predictive.Welford.zeros(samples.shape[1:])
  for sample in samples:
    variance = np.sum(sample * (1 - sample), -1)
    entropy = -np.sum(sample * np.log(sample), -1)
    welford = welford.add(predictive.Moments(sample, variance, entropy))
  return welford.predictive()


@pytest.mark.parametrize(
  'spread, tolerance',
  # The running mean in float32 has an error up to 6e-8; the spread is 1e-5.
  [(0.3, 1e-5), (1e-3, 1e-4), (1e-5, 1e-2)],
)
def test_streamed_moments_agree_with_stacked_samples(spread, tolerance):
  rng = np.random.default_rng(2)
  p = rng.dirichlet(np.ones(4), size=20)
  other = rng.dirichlet(np.ones(4), size=[30, 20])
  samples = np.float32((1 - spread) * p + spread * other)
  got = streamed(samples)
  np.testing.assert_allclose(got.mean, samples.mean(0), rtol=1e-5)
  expected = (samples * (1 - samples)).sum(-1).mean(0)
  np.testing.assert_allclose(got.aleatoric, expected, rtol=1e-5, atol=1e-7)
  expected = -(samples * np.log(samples)).sum(-1).mean(0)
  np.testing.assert_allclose(got.expected_entropy, expected, rtol=1e-5)
  expected = samples.astype(np.float64).var(0).sum(-1)
  np.testing.assert_allclose(got.epistemic, expected, rtol=tolerance)


@pytest.fixture(scope='module')
def flipout():
  """Returns two workers and a posterior."""
  workers = [
    toys.worker(variant='flipout', strategy=strategy)
    for strategy in training.strategies()
  ]
  model = toys.start(workers[0])
  return workers, model._replace(scale=model.scale * 10)


def test_predictions_are_bit_for_bit_identical_for_any_workers(flipout):
  workers, model = flipout
  predict = functools.partial(
    training.predict, model=model, x=X, seed=SEED, num_samples=3
  )
  both = predict(workers)
  assert len(workers) == 2
  # Earlier training of a worker has no effect.
  workers[1].train(toys.task(model))
  assert toys.same(both, predict(workers[:1]), predict(workers[::-1]))
  other = predict(workers, seed=seeds.named(0, 'test', 1))
  assert not toys.same(both, other)
  # The result of a batch does not depend on later batches.
  first = predict(workers, x=X[:256])
  assert toys.same(first, tuple(array[:256] for array in both))


@pytest.mark.parametrize('variant', ['flipout', 'mc_dropout'])
def test_a_sample_is_a_function_of_the_example(variant):
  """Equal examples get equal predictions, in any order and any batch."""
  build = functools.partial(
    models.build, 'mlp', variant=variant, input_shape=(4,), num_classes=3,
    hidden_units=(8,), activation='relu',
    **({'rate': 0.5} if variant == 'mc_dropout' else {'initial_scale': 0.5}),
  )  # fmt: skip
  worker = toys.worker(build)
  predict = functools.partial(
    training.predict, [worker], toys.start(worker), seed=SEED, num_samples=3
  )
  found = predict(X)
  assert np.ptp(predict(np.repeat(X[:1], 5, 0)).mean, 0).max() < 1e-6
  order = np.random.default_rng(2).permutation(len(X))
  for name, values in found._asdict().items():
    moved = getattr(predict(X[order]), name)
    np.testing.assert_allclose(moved, values[order], atol=1e-5)
  assert found.epistemic.mean() > 1e-3


@pytest.mark.parametrize('variant', ['flipout', 'mc_dropout'])
def test_the_mean_predicts_on_request(variant):
  mean = toys.worker(
    variant=variant, inference=training.Inference(by_samples=False)
  )
  start = toys.start(mean)
  found = training.predict([mean], start, X, seed=SEED, num_samples=2)
  kernel, bias = np.split(start.mean, [12])
  logits = np.asarray(X @ kernel.reshape(4, 3) + bias)
  expected = tf.nn.softmax(logits)
  np.testing.assert_allclose(found.mean, expected, rtol=1e-5)
