"""Tests that every example of docs/your_own.md runs with its flags."""

import pathlib
import re
import shlex

import numpy as np
import pytest
import toys

from bfl_tf import runs
from bfl_tf.config.config import Config

_ROOT = pathlib.Path(__file__).parents[1]
_PAGE = (_ROOT / 'docs' / 'your_own.md').read_text('utf-8')
_FILES = {
  re.match(r'# (\w+\.py)\n', text)[1]: text
  for text in re.findall(r'```python\n(.*?)```', _PAGE, re.DOTALL)
}
_COMMAND = re.search(r'```\n(bfl-tf run .*?)```', _PAGE, re.DOTALL)[1]


def test_a_run_uses_every_example_of_the_page(tmp_path, monkeypatch):
  for name, text in _FILES.items():
    (tmp_path / name).write_text(text)
  _, _, *arguments = shlex.split(_COMMAND.replace('\\\n', ' '))
  flagfile, run_dir = tmp_path / 'run.flags', tmp_path / 'run'
  flagfile.write_text('\n'.join(arguments))
  monkeypatch.syspath_prepend(tmp_path)
  config = Config.from_flagfile(flagfile)
  runs.Run(config, run_dir, draw_plots=False).execute()
  *_, row = toys.table(run_dir / 'metrics.csv')
  assert float(row['spread']) > 0
  wanted = min(1, 1 / float(row['spread']))
  assert float(row['damped_step']) == pytest.approx(wanted, rel=1e-6)
  assert row['clients_pooled'] == '3'
  assert 0 < float(row['personal_accuracy']) <= 1
  assert float(row['cost']) > 0
  flags = (run_dir / 'flags.txt').read_text('utf-8').splitlines()
  assert {*flags} >= {
    '--small.units=8', '--PowerMean.power=2.0', '--FreeRider.fraction=0.2',
    '--CyclicKL.cycle=5',
  }  # fmt: skip
  assert sum(line.startswith('# digest of ') for line in flags) == 13
  counts = np.loadtxt(run_dir / 'partition.csv', delimiter=',', skiprows=1)
  assert counts[:, 1:].sum(1).tolist() == [100, 100, 100]
