"""Test of the comparison of all methods, at its smallest size."""

import csv

from absl.testing import flagsaver
import pytest

from experiments import fair


def test_the_three_steps_write_trials_runs_and_a_table(tmp_path, monkeypatch):
  preset = tmp_path / 'small.flags'
  preset.write_text(
    '--dataset=digits\n--model=logistic\n--num_clients=3\n--num_rounds=1\n'
  )
  monkeypatch.setattr(fair, '_PRESET', str(preset))
  monkeypatch.setattr(fair, '_TRIALS', 2)
  monkeypatch.setattr(fair, '_SEEDS', (0, 1))
  monkeypatch.setattr(fair, 'SETTINGS', {'dirichlet': {}})
  monkeypatch.setattr(fair, '_OTHERS', (('near', 'digits'),))
  for step, number in (('tune', 4), ('tune', 4), ('score', 4), ('tables', 4)):
    with flagsaver.as_parsed(
      step=step, output_dir=str(tmp_path), methods='fedavg,fedprox'
    ):
      fair.main()
    name = 'tune.csv' if step == 'tune' else 'score.csv'
    with (tmp_path / name).open(newline='') as file:
      rows = list(csv.DictReader(file))
    assert len(rows) == number
    assert not any(row['failure'] for row in rows)
  # The table has the mean of both seeds.
  of_fedavg = [float(row['nll']) for row in rows if row['method'] == 'fedavg']
  text = (tmp_path / 'dirichlet.md').read_text()
  assert f'{sum(of_fedavg) / 2:.4g} ±' in text
  assert float(rows[0]['worst_client']) == pytest.approx(
    float(rows[0]['accuracy']), abs=0.2
  )
