"""Papers' claims, by hand, and where no method differs from another."""

import dataclasses
from typing import NamedTuple

from harness import made_runs
import numpy as np
import pytest

from experiments import artifacts
from experiments.harness import cells, claims


@pytest.mark.parametrize(
  ('name', 'gain', 'difference'),
  [
    # It does not rank: all of the tenth is left. Ranks perfectly: far over it.
    ('epistemic_calibration_at_five_epochs', 0, 0.1),
    ('epistemic_calibration_at_five_epochs', 1, -0.9),
    ('pretrained_one_shot_is_calibrated', 1, 0.75),
    ('pretrained_one_shot_is_calibrated', 0, -0.25),
  ],
)
def test_claims_of_calibration_by_hand(tmp_path, name, gain, difference):
  comparison = artifacts.CLAIMS[f'posterior_pooling/{name}'].comparisons[0]
  (cell,) = comparison.cells
  task = cells.Task(cell, 'overnight', 0, tmp_path)
  made_runs.finish(task, 0.75, epistemic_ranking=gain)
  assert comparison.difference({cell: task}) == pytest.approx(difference)


class _Made(NamedTuple):
  """Stands for a task."""

  value: float
  is_done: bool = True


def _share_failed(comparisons, seeds=3, draws=1000):
  """How many claims fail where all cells score alike, up to noise."""
  comparisons = [
    dataclasses.replace(c, measure=lambda made: made.value, margin=0.0)
    for c in comparisons
  ]
  of = list(dict.fromkeys(cell for c in comparisons for cell in c.cells))
  values = np.random.default_rng(0).normal(size=(draws, seeds, len(of)))
  failed = 0
  for draw in values:
    made = [dict(zip(of, map(_Made, seed))) for seed in draw]
    results = [
      claims.Result(c, np.array([c.difference(tasks) for tasks in made]))
      for c in comparisons
    ]
    failed += claims.verdict(results) == 'does not hold'
  return failed / draws


@pytest.mark.parametrize(
  'name',
  [
    # Each cell over the one before; the median of ten; rules by two weightings.
    'fedbe/one_round_order',
    'fl_swag/beats_most_clients',
    'posterior_pooling/weighting_makes_no_difference',
  ],
)
def test_claims_seldom_fail_where_no_method_differs(name):
  # Four standard errors of a share of 1 000.
  most = 0.05 + 4 * (0.05 * 0.95 / 1000) ** 0.5
  assert _share_failed(artifacts.CLAIMS[name].comparisons) < most
