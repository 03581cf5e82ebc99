"""The table of all claims, from runs written by hand."""

import csv

from harness import made_runs
import pytest

from experiments.harness import cells, verdicts


@pytest.fixture
def claim(tmp_path):
  """Three seeds at laptop scale, one overnight, none at the paper's."""
  made = made_runs.claim()
  left, right = made.cells
  for scale, accuracies in {
    'laptop': (0.21, 0.52, 0.83), 'overnight': (0.6,),
  }.items():  # fmt: skip
    for seed, accuracy in enumerate(accuracies):
      for cell, value in ((left, accuracy), (right, 0.2 + 0.3 * seed)):
        made_runs.finish(cells.Task(cell, scale, seed, tmp_path), value)
  return made


def test_by_hand(claim, tmp_path):
  laptop, overnight, paper = verdicts.read([claim], tmp_path)
  # Differences 1, 2, 3: error 3^-0.5, the quantile 2.920 times it is visible.
  assert (laptop['claim_verdict'], laptop['verdict']) == ('holds', 'holds')
  assert laptop['effect'] == pytest.approx(2)
  assert laptop['holds_from'] == pytest.approx(2.920 * 3**-0.5, abs=5e-4)
  assert laptop['fails_from'] == -laptop['holds_from']
  assert (overnight['p_above'], overnight['seeds']) == (None, 1)
  assert (paper['effect'], paper['planned_seeds']) == (None, 3)


def test_what_is_written(claim, tmp_path):
  text = verdicts.write([claim], tmp_path)
  _, *lines = (line.split() for line in text.splitlines())
  assert [line[-5:] for line in lines] == [
    ['holds', '2.0000', '-1.6859', '1.6859', '3'],
    ['test', '40.0000', '-', '-', '1'],
  ]
  with (tmp_path / 'verdicts.csv').open(newline='') as file:
    laptop, overnight, paper = csv.DictReader(file)
  assert (laptop['scale'], laptop['degrees_of_freedom']) == ('laptop', '2')
  assert (overnight['p_above'], paper['effect']) == ('', '')
