"""Tests of the likelihoods, against TFP and Bayesian linear regression."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_probability import distributions as tfd
import toys

from bfl_tf import models, seeds, training, weights

SIGMA, PRIOR = 0.3, 2.0
RNG = np.random.default_rng(0)
X = RNG.normal(size=[40, 3]).astype(np.float32)
Y = (5 + X @ [1.0, -2.0, 0.5] + SIGMA * RNG.normal(size=40)).astype(np.float32)
MOMENTS = float(Y.mean()), float(Y.std())
KNOWN = training.Gaussian(MOMENTS, 'known', SIGMA)
DATA = training.Data(X, Y, np.zeros(3, np.float32), np.ones(3, np.float32))


def linear(variant, likelihood, **settings):
  build = functools.partial(
    models.build, 'logistic', variant=variant, input_shape=(3,),
    num_classes=likelihood.num_outputs(0),
    num_constants=likelihood.num_constants(),
  )  # fmt: skip
  return toys.worker(
    build, data=DATA, batch_size=len(Y), likelihood=likelihood, **settings
  )


def exact_posterior():
  """Returns mean and covariance of the weights for the prior N(0, PRIOR^2)."""
  design = MOMENTS[1] * np.c_[X, np.ones(len(X))].astype(np.float64)
  precision = design.T @ design / SIGMA**2 + np.eye(4) / PRIOR**2
  covariance = np.linalg.inv(precision)
  return covariance @ design.T @ (Y - MOMENTS[0]) / SIGMA**2, covariance


def task(worker, **changes):
  start = weights.Weights(*map(np.asarray, weights.read(worker.variables)))
  values = {
    'indices': np.arange(len(Y), dtype=np.int32),
    'rates': np.full(3000, 1e-2, np.float32),
    'seed': np.zeros(2, np.int32),
  }
  return training.ClientTask(start, **values | changes)


@pytest.mark.parametrize(
  ('likelihood', 'outputs', 'scale'),
  [
    (KNOWN, [[0.5], [-1.0]], [SIGMA, SIGMA]),
    (
      training.Gaussian(MOMENTS, 'input'),
      [[0.5, 0.0], [-1.0, 2.0]],
      MOMENTS[1] * np.log1p(np.exp([0, 2.0]) * (np.e - 1)),
    ),
  ],
)
def test_the_gaussian_likelihood_agrees_with_tfp(likelihood, outputs, scale):
  outputs = np.array(outputs, np.float32)
  mean = MOMENTS[0] + MOMENTS[1] * outputs[:, 0]
  normal = tfd.Normal(mean, np.float32(scale))
  labels = np.float32([4.0, 9.0])
  loss = likelihood.loss(outputs, labels)
  np.testing.assert_allclose(loss, -normal.log_prob(labels), rtol=1e-5)
  moments = likelihood.moments(outputs)
  np.testing.assert_allclose(moments.mean[:, 0], normal.mean(), rtol=1e-6)
  np.testing.assert_allclose(moments.variance, normal.variance(), rtol=1e-5)
  np.testing.assert_allclose(moments.entropy, normal.entropy(), rtol=1e-5)


def test_the_loss_of_distillation_is_the_cross_entropy():
  outputs = np.float32([[0.5], [-1.0]])
  mean, scale = np.float32([4.0, 6.0]), np.float32([0.2, 1.5])
  loss = KNOWN.loss(outputs, np.stack([mean, scale**2], 1))
  teacher = tfd.Normal(mean, scale)
  student = tfd.Normal(MOMENTS[0] + MOMENTS[1] * outputs[:, 0], SIGMA)
  expected = teacher.entropy() + tfd.kl_divergence(teacher, student)
  np.testing.assert_allclose(loss, expected, rtol=1e-4)


def test_training_reaches_the_mean_of_bayesian_linear_regression():
  decay = 1 / (PRIOR**2 * len(Y))
  worker = linear('deterministic', KNOWN, weight_decay=decay)
  result = worker.train(task(worker))
  np.testing.assert_allclose(
    result.model.point, exact_posterior()[0], rtol=0, atol=1e-5
  )


def test_variational_training_reaches_the_best_factorized_posterior():
  worker = linear(
    'flipout', KNOWN, optimizer=training.Adam(),
    inference=training.Inference(training.Objective(prior_scale=PRIOR)),
  )  # fmt: skip
  rates = np.float32(3e-2 * 0.999 ** np.arange(4000))
  result = worker.train(task(worker, rates=rates))
  mean, covariance = exact_posterior()
  best = np.diag(np.linalg.inv(covariance)) ** -0.5
  np.testing.assert_allclose(result.model.scale, best, rtol=0.03)
  np.testing.assert_allclose(
    result.model.loc, mean, rtol=0, atol=0.1 * min(best)
  )


def test_a_laplace_approximation_is_the_best_posterior_at_the_mean():
  """Its precision is the diagonal of that of Bayesian linear regression."""
  optimizer = training.Laplace(prior_scale=PRIOR, curvature_samples=2000)
  worker = linear(
    'deterministic', KNOWN, optimizer=optimizer,
    inference=toys.inference(optimizer),
  )  # fmt: skip
  rates = np.float32(3e-2 * 0.998 ** np.arange(5000))
  model = worker.train(task(worker, rates=rates)).model
  mean, covariance = exact_posterior()
  np.testing.assert_allclose(model.loc, mean, rtol=0, atol=1e-5)
  # The standard error of a variance is sqrt(2 / samples) of it.
  precision = np.diag(np.linalg.inv(covariance))
  np.testing.assert_allclose(model.scale**-2, precision, rtol=5 * 1e-3**0.5)


def test_predictive_variances_are_those_of_posterior_and_noise():
  worker = linear('flipout', KNOWN)
  mean, covariance = exact_posterior()
  scale = np.sqrt(np.diag(covariance))
  none = np.zeros(0, np.float32)
  model = weights.Weights(np.float32(mean), np.float32(scale), none, none)
  samples = 4000
  found = training.predict(
    [worker], model, X, seed=seeds.named(0, 'test'), num_samples=samples
  )
  design = MOMENTS[1] * np.c_[X, np.ones(len(X))]
  epistemic = np.square(design) @ np.square(scale)
  error = np.sqrt(epistemic / samples)
  center = MOMENTS[0] + design @ mean
  assert np.all(np.abs(found.mean[:, 0] - center) < 5 * error)
  # The variance is a float32 sum over samples.
  np.testing.assert_allclose(found.aleatoric, SIGMA**2, rtol=3e-4)
  # The standard error of a variance is sqrt(2 / samples) of it.
  tolerance = 5 * np.sqrt(2 / samples)
  np.testing.assert_allclose(found.epistemic, epistemic, rtol=tolerance)


def test_constant_noise_is_trained_to_the_residual():
  constant = training.Gaussian(MOMENTS, 'constant')
  worker = linear('deterministic', constant, optimizer=training.Adam())
  rates = np.full(3000, 3e-2, np.float32)
  model = worker.train(task(worker, rates=rates)).model
  seed = seeds.named(0, 'test')
  found = training.predict([worker], model, X, seed=seed)
  residual = np.mean(np.square(Y - found.mean[:, 0]))
  np.testing.assert_allclose(found.aleatoric, residual, rtol=1e-2)


@pytest.mark.parametrize('scale', [1e-20, 1e20])
def test_labels_may_be_of_any_size(scale):
  """Variances of such labels are outside the range of float32."""
  size = 2.0 ** round(np.log2(scale))  # An exact factor.
  outputs = np.array([[0.5, 0.0], [-1.0, 2.0]], np.float32)
  labels, found = np.array([4.0, 7.0], np.float32), []
  for factor in (1.0, size):
    likelihood = training.Gaussian(
      (MOMENTS[0] * factor, MOMENTS[1] * factor), 'input'
    )
    mean, variance, entropy = map(np.asarray, likelihood.moments(outputs))
    predictive = training.Predictive(mean, variance, variance / 8, entropy)
    scaled = (labels * factor).astype(np.float32)
    mixtures = training.Mixtures(likelihood, {'S': 0.5})
    mixtures.add('S', predictive)
    targets = likelihood.targets(mixtures.union(['S']), 2.0)
    arrays = likelihood.member_arrays(predictive, scaled)
    evaluation = likelihood.evaluation(predictive, scaled)
    found.append(
      [
        evaluation.scale / factor,
        evaluation.residual,
        arrays['squared_error'] / factor**2,
        likelihood.log_prob(likelihood.natural(predictive), scaled)
        + np.log(factor),
        np.asarray(likelihood.loss(outputs, scaled)) - np.log(factor),
        np.asarray(likelihood.loss(outputs, targets)) - np.log(factor),
      ]
    )
  assert np.isfinite(found).all()
  np.testing.assert_allclose(*found, rtol=1e-5)


@pytest.mark.parametrize(
  ('likelihood', 'outputs'),
  [
    (training.Categorical(), [0.5, -0.3, 1.0]),
    (KNOWN, [0.4]),
    (training.Gaussian((1.0, 3.0)), [0.4, -0.2]),
  ],
)
def test_the_fisher_information_is_the_covariance_of_the_score(
  likelihood, outputs
):
  many = tf.tile(tf.constant([outputs]), [200_000, 1])
  labels = likelihood.sample(many, seeds.named(0, 'test'))
  with tf.GradientTape() as tape:
    tape.watch(many)
    loss = likelihood.loss(many, labels)
  score = tape.gradient(loss, many).numpy()
  expected = score.T @ score / len(score)
  found = likelihood.fisher(many[:1])[0]
  atol = 0.02 * np.abs(expected).max()
  np.testing.assert_allclose(found, expected, rtol=0, atol=atol)
