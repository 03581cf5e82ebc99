"""Test of the reference posterior on a small logistic regression."""

import numpy as np

from experiments.papers.fair import reference
from experiments.reference_posteriors import distance


def test_chains_predict_like_samples_of_a_nearly_gaussian_posterior(
  monkeypatch,
):
  monkeypatch.setattr(reference, '_NUM_SAMPLES', 400)
  rng = np.random.default_rng(0)
  x = rng.normal(size=[2000, 3]).astype(np.float32)
  utility = x @ rng.normal(size=[3, 3]) + rng.gumbel(size=[2000, 3])
  y, with_one = (
    utility.argmax(1),
    np.pad(x, ((0, 0), (0, 1)), constant_values=1),
  )
  mode = reference._mode(with_one, y, 1.0)
  found, root = reference._draws(with_one, y, mode, 1.0)
  # Far inputs, where the mean over the posterior differs from its mode.
  test = 30 * x[:200]
  means = reference._means(
    found, root, mode, np.pad(test, ((0, 0), (0, 1)), constant_values=1)
  )
  near = distance.laplace(x, y, 3)
  logs = distance.log_probabilities(near.sample(5000), test)
  expected = np.exp(logs).mean(0)
  at_mode = distance.log_probabilities(near.mean[np.newaxis], test)
  gap = distance.total_variation(np.exp(at_mode[0]), expected)
  assert distance.total_variation(means.mean(0), expected) < gap / 3
