"""Papers' claims, by hand, and where no method differs from another."""

from harness import made_runs
import pytest

from experiments import artifacts
from experiments.harness import cells


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
