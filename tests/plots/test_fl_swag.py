"""Figures of calibration, sizes and samples show what they are given."""

import numpy as np
import pytest

from bfl_tf import metrics, plots

PROBS = np.array([[0.9, 0.1], [0.7, 0.3], [0.7, 0.3], [0.55, 0.45]])
LABELS = np.array([0, 0, 1, 1])


def save(folder, labels, probs):
  nothing = np.zeros(len(labels))
  np.savez(
    folder / 'predictions.npz', labels=labels, probs=probs,
    normalized_entropy=nothing, aleatoric_uncertainty=nothing,
    epistemic_uncertainty=nothing,
  )  # fmt: skip


@pytest.fixture
def run(tmp_path):
  folder = tmp_path / 'run'
  folder.mkdir()
  save(folder, LABELS, PROBS)
  rows = 'client,class_0,class_1\n0,3,1\n1,0,5\n'
  (folder / 'partition.csv').write_text(rows)
  return folder


def test_gap_above_by_hand():
  curve = metrics.gap_above(PROBS, LABELS, 11)
  np.testing.assert_allclose(curve.thresholds, np.arange(11) / 10)
  assert curve.counts.tolist() == [4] * 6 + [3, 3, 1, 1, 0]
  # All: 2 of 4 right at a mean confidence of 0.7125; three: 2 of 3 at 0.7667.
  np.testing.assert_allclose(curve.gap[:6], 0.5 - 0.7125)
  np.testing.assert_allclose(curve.gap[6:8], 2 / 3 - 2.3 / 3)
  np.testing.assert_allclose(curve.gap[8:10], 0.1)
  assert np.isnan(curve.gap[10])
  assert curve.gap[0] == pytest.approx(-metrics.confidence_gap(PROBS, LABELS))


def test_calibration_by_confidence_and_above_it(run):
  (axes,) = plots.calibration_gap({'one': run}, num_bins=10).axes
  _, line = axes.lines
  np.testing.assert_allclose(line.get_xdata(), [0.55, 0.7, 0.9])
  np.testing.assert_allclose(line.get_ydata(), [-0.55, -0.2, 0.1], atol=1e-12)
  (label,) = axes.get_legend().get_texts()
  assert label.get_text() == 'one (ECE 0.2625)'
  (axes,) = plots.calibration_above({'one': run, 'two': run}).axes
  assert len(axes.lines) == 3 and axes.get_xlim() == (0, 1)
  assert axes.lines[1].get_ydata()[0] == pytest.approx(-0.2125)


def test_sizes_are_stacked_by_class(run):
  (axes,) = plots.sizes(run).axes
  first, second = axes.containers
  assert [bar.get_height() for bar in first] == [3, 0]
  assert [bar.get_y() for bar in second] == [3, 0]
  assert axes.get_title() == '9 examples on 2 clients'


def test_samples_share_a_plane():
  rng = np.random.default_rng(0)
  direction = np.array([3.0, 4.0, 0.0]) / 5
  wide = np.outer(rng.normal(size=200), direction) * 10
  samples = {'a': wide, 'b': rng.normal(size=[100, 3])}
  points = plots.principal(samples)
  # The first component is the wide direction, whatever its sign.
  along = (wide - np.concatenate([*samples.values()]).mean(0)) @ direction
  assert abs(np.corrcoef(points['a'][:, 0], along)[0, 1]) > 0.999
  left, right = plots.plane(points).axes
  np.testing.assert_allclose(left.lines[0].get_xydata(), points['a'])
  assert right.get_title() == 'b: 100 draws'
  assert left.get_xlim() == right.get_xlim()
  assert [a.name for a in plots.surface(points).axes] == ['3d', '3d']
