"""Tests of the progress output."""

import numpy as np
import pytest

from bfl_tf.runs import progress


@pytest.mark.parametrize(
  'losses, expected',
  [
    (np.exp(-np.arange(50) / 5), ''),
    (np.exp(-np.arange(50) / 30), 'falls'),
    (1 - np.exp(-np.arange(50) / 30), 'rises'),
    # Noise around a constant is no trend.
    (np.random.default_rng(0).normal(size=50), ''),
    (np.arange(9), ''),
    ([*range(49), np.nan], ''),
  ],
)
def test_a_loss_that_still_changes_is_found(losses, expected):
  assert progress.trend(losses) == expected
  assert progress.trend([1e6 * loss for loss in losses]) == expected
