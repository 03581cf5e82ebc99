"""Test of the comparison of all methods, at its smallest size."""

import collections
import subprocess
import sys

import pytest
import toys

# The flags of several binaries cannot be defined in one process.
_SMALL = """
import sys
from absl import flags
from experiments import fair

folder = sys.argv[1]
fair._TRIALS, fair._SEEDS = 2, (0, 1)
fair.COMPARISONS['fair'] = fair.COMPARISONS['imagenet']._replace(
  preset=f'{folder}/small.flags',
  settings={'one': {}, 'two': {'num_rounds': 2}},
  trial={'validation_split': 0.2},
  others={'near': 'digits'},
)
methods = f'--methods=fedavg,{folder}/own.flags'
flags.FLAGS(['fair', f'--output_dir={folder}', methods])
for step in ('tune', 'tune', 'score', 'tables'):
  flags.FLAGS.step = step
  fair.main()
"""


@pytest.mark.process
def test_the_three_steps_write_trials_runs_and_a_table(tmp_path):
  (tmp_path / 'small.flags').write_text(
    '--dataset=digits\n--model=logistic\n--num_clients=3\n--num_rounds=1\n'
  )
  (tmp_path / 'own.flags').write_text(
    '--client_parts=proximal\n--proximal.weight=0.1\n'
  )
  subprocess.run([sys.executable, '-c', _SMALL, str(tmp_path)], check=True)
  for name, number in (('tune', 2), ('score', 2)):
    rows = toys.table(tmp_path / f'{name}.csv')
    # FedAvg and a user's method, in two settings; no trial ran twice.
    assert len(rows) == 2 * 2 * number
    assert not any(row['failure'] for row in rows)
    assert all('learning_rate' in row['values'] for row in rows)
    if name == 'tune':
      # A method that names no optimizer has trials with both.
      used = collections.Counter(row['values'].split()[0] for row in rows)
      assert [*used.values()] == [4, 4]
  rows = [row for row in rows if row['setting'] == 'two']
  of_fedavg = [float(row['nll']) for row in rows if row['method'] == 'fedavg']
  text = (tmp_path / 'two.md').read_text('utf-8')
  assert f'{sum(of_fedavg) / 2:.3f} ±' in text and '| own |' in text
  selected = (tmp_path / 'selected.md').read_text('utf-8')
  assert f'| two | fedavg | {rows[0]["values"]} |' in selected
  assert (tmp_path / 'ranks.png').exists() and (tmp_path / 'bytes.png').exists()
  assert 0 < float(rows[0]['worst_client']) <= 1
