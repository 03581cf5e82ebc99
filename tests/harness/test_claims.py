"""Claims pair by seed and judge by two standard errors."""

from harness import made_runs
import numpy as np
import pytest

from experiments.harness import cells, claims

_POINTS = cells.Measure('points', cells.final('accuracy'), factor=100)


def _claim(margin=0.0, right=True):
  left, other = made_runs.cell('left'), made_runs.cell('right')
  comparison = claims.Comparison(
    'left over right',
    claims.Side(claims.only, (left,)),
    claims.Side(claims.only, (other,)) if right else None,
    _POINTS,
    margin,
  )
  return claims.Claim(
    made_runs.PAPER, 'a_claim', 'Left is better.', (comparison,), {'smoke': 3}
  )


def _finish(claim, root, left, right):
  for cell, values in zip(claim.cells, (left, right)):
    for seed, value in enumerate(values):
      made_runs.finish(cells.Task(cell, 'smoke', seed, root), value)


@pytest.mark.parametrize(
  ('left', 'margin', 'expected'),
  [
    # Seeds differ by far more than the methods do: only pairing sees it.
    ((0.21, 0.52, 0.83), 0.0, 'holds'),
    ((0.19, 0.48, 0.77), 0.0, 'does not hold'),
    ((0.21, 0.48, 0.81), 0.0, 'undecided'),
    ((0.21, 0.52, 0.83), -10.0, 'does not hold'),
    ((0.19, 0.48, 0.77), 10.0, 'holds'),
  ],
)
def test_verdict(tmp_path, left, margin, expected):
  claim = _claim(margin)
  _finish(claim, tmp_path, left, (0.2, 0.5, 0.8))
  verdict, text = claims.report(claim, 'smoke', tmp_path)
  assert verdict == expected
  assert f'3 seeds: {expected}' in text


def test_difference_by_hand(tmp_path):
  claim = _claim(margin=1.0)
  _finish(claim, tmp_path, (0.25, 0.5, 0.75), (0.2, 0.4, 0.7))
  (result,) = claim.results('smoke', tmp_path)
  np.testing.assert_allclose(result.differences, [6.0, 11.0, 6.0])


def test_undecided_while_a_seed_is_missing(tmp_path):
  claim = _claim()
  _finish(claim, tmp_path, (0.9, 0.9), (0.1, 0.2))
  assert claims.report(claim, 'smoke', tmp_path)[0] == 'undecided'


def test_against_zero(tmp_path):
  claim = _claim(right=False)
  _finish(claim, tmp_path, (0.9, 0.8, 0.9), ())
  assert claims.report(claim, 'smoke', tmp_path)[0] == 'holds'


def test_one_comparison_that_fails_fails_the_claim():
  class Fixed:
    def __init__(self, verdict):
      self.verdict = verdict

  verdict = lambda *names: claims.verdict([Fixed(n) for n in names])  # noqa: E731
  assert verdict('holds', 'holds') == 'holds'
  assert verdict('holds', 'undecided') == 'undecided'
  assert verdict('undecided', 'does not hold') == 'does not hold'
  assert set(claims.VERDICTS.values()) == {0, 1, 3}
