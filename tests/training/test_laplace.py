"""Tests of the Laplace approximation on a softmax regression."""

import numpy as np
import pytest
from scipy import special
import toys

from bfl_tf import training


def test_the_precision_is_that_of_the_gauss_newton_matrix():
  """It is the prior's plus l h, with h = mean of x^2 p (1 - p) per weight."""
  optimizer = training.Laplace(prior_scale=0.5, curvature_samples=1000)
  worker = toys.worker(optimizer=optimizer, inference=toys.inference(optimizer))
  begin = toys.start(worker)
  indices = np.arange(40)
  # Without epochs, the mean stays where it is. l is (40 + 10) / 2.
  effective = {
    'other_examples': np.int32(10), 'kl_weight': np.float32(2), 'epochs': 0,
  }  # fmt: skip
  model = worker.train(toys.task(begin, indices, **effective)).model
  x = np.c_[toys.TRAIN.x[indices], np.ones(40)].astype(np.float64)
  kernel, bias = np.split(begin.mean, [12])
  probs = special.softmax(x @ np.stack([*kernel.reshape(4, 3), bias]), -1)
  curvature = np.square(x).T @ (probs * (1 - probs)) / 40
  expected = 0.5**-2 + 25 * curvature.ravel()
  # 3 batches and 1000 samples give a standard error of about 3 %.
  np.testing.assert_allclose(model.scale**-2, expected, rtol=0.15)


def test_fedlap_cov_reaches_the_optimum_of_all_data():
  """PVI with Laplace clients minimizes the sum of the losses and the prior."""
  settings = {
    'client_optimizer': 'laplace', 'laplace.curvature_samples': 20,
    'client_parts': ('pvi',), 'pvi.damping': 0.3,
    'client_learning_rate': 0.05, 'constant.step_decay': 0.98,
    'local_epochs': 150, 'batch_size': 150, 'num_clients': 3,
  }  # fmt: skip
  alone = {'num_clients': 1, 'partition': 'iid', 'pvi.damping': 1.0}
  found, _ = toys.execute(toys.experiment(**settings), 15)
  best, _ = toys.execute(toys.experiment(**settings | alone), 6)
  # The likelihood does not depend on the mean over the classes, so that it
  # converges slowly.
  centered = [
    np.reshape(each.model.loc, (5, 3))
    - np.reshape(each.model.loc, (5, 3)).mean(1, keepdims=True)
    for each in (found, best)
  ]
  np.testing.assert_allclose(*centered, rtol=0, atol=0.02)


@pytest.mark.parametrize('optimizer', [training.Laplace, training.IVON])
def test_the_broadcast_may_be_the_prior(optimizer):
  inference = toys.inference(optimizer(update_prior=True, prior_scale=3.0))
  worker = toys.worker(optimizer=inference.optimizer, inference=inference)
  start = toys.start(worker)
  start = start._replace(scale=np.linspace(0.1, 0.5, 15, dtype=np.float32))
  trained = worker.training.variables.trainable
  priors = inference.prior(None, start, trained)
  shift, precision = (
    np.concatenate([np.ravel(each) for each in both]) for both in zip(*priors)
  )
  np.testing.assert_allclose(precision, start.scale**-2.0, rtol=1e-6)
  np.testing.assert_allclose(shift, start.loc * precision, rtol=1e-5)


def precision(x, kernel_and_bias, prior):
  """Returns the Hessian of a softmax regression plus the prior's precision."""
  x = np.c_[x, np.ones(len(x))].astype(np.float64)
  probs = special.softmax(x @ kernel_and_bias.reshape(x.shape[1], -1), -1)
  each = np.einsum('nc,cd->ncd', probs, np.eye(probs.shape[1]))
  each -= probs[:, :, np.newaxis] * probs[:, np.newaxis]
  hessian = np.einsum('nf,ng,ncd->fcgd', x, x, each)
  return hessian.reshape([x.shape[1] * probs.shape[1]] * 2) + prior * np.eye(
    x.shape[1] * probs.shape[1]
  )


def covariance(model):
  factor = model.factor.astype(np.float64)
  return np.diag(np.square(model.scale, dtype=float)) + factor.T @ factor


def test_a_product_of_full_covariances_equals_that_of_all_data():
  """At the same weights, and with the prior to the power 1 / K."""
  settings = {
    'client_optimizer': 'laplace', 'laplace.covariance': 'full',
    'laplace.prior_scale': 6**0.5, 'pooling': 'product', 'batch_size': 16,
    # The weights stay where they are.
    'client_learning_rate': 1e-30,
  }  # fmt: skip
  state, _ = toys.execute(toys.experiment(**settings), 1)
  model = state.model
  data = toys.blobs()
  inputs = (data.train.x - data.mean) / data.std
  expected = precision(inputs, model.loc.astype(float), 1.0)
  root = np.linalg.cholesky(expected)
  # It is the identity for equal covariances, in any direction.
  found = root.T @ covariance(model) @ root
  np.testing.assert_allclose(found, np.eye(15), rtol=0, atol=1e-4)
  assert model.factor.shape == (15, 15)


def test_a_full_covariance_of_many_weights_is_rejected():
  chosen = {'client_optimizer': 'laplace', 'laplace.covariance': 'full'}
  with pytest.raises(ValueError, match='covariance=full'):
    toys.experiment(model='mlp', **{'mlp.hidden_units': (300,)}, **chosen)
  with pytest.raises(ValueError, match='pvi'):
    toys.experiment(client_parts=('pvi',), **chosen)
