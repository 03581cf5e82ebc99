"""Tests of the progress output."""

import numpy as np
import pytest

from bfl_tf.runs import progress


def test_progress_has_a_line_per_round_with_the_time_left(capsys):
  shown = progress.Progress(10, True, has_prior=True)
  shown.report({'round': 8, 'train_seconds': 50.0, 'train_loss': 0.25})
  shown.report({'round': 9, 'train_seconds': 60.0, 'evaluate_seconds': 30.0})
  shown.report({'round': 10, 'train_seconds': 50.0, 'accuracy': 0.5,
                'train_loss': 21.0, 'nll': 2.0,
                'rejected': '3 7', 'clients_rejected': 2})  # fmt: skip
  assert capsys.readouterr().out.splitlines() == [
    'round  8/10  train_loss 0.25  50.0 s, about 0:01:40 left',
    # The time left uses only rounds after the interruption.
    'round  9/10    90.0 s, about 0:01:10 left',
    'round 10/10  accuracy 0.5  nll 2  train_loss 21  rejected 2 (client 3, 7)'
    '  50.0 s',
    'train_loss is 10 times nll: the divergence from the prior dominates; '
    '--flipout.temperature below 1 lowers its weight',
  ]


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
