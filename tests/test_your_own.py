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


@pytest.fixture(scope='module')
def run_dir(tmp_path_factory):
  folder = tmp_path_factory.mktemp('anywhere')
  for name, text in _FILES.items():
    (folder / name).write_text(text)
  _, _, *arguments = shlex.split(_COMMAND.replace('\\\n', ' '))
  (folder / 'run.flags').write_text('\n'.join(arguments))
  with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(folder)
    config = Config.from_flagfile(folder / 'run.flags')
    runs.Run(config, folder / 'run', draw_plots=False).execute()
  return folder / 'run'


def test_a_run_uses_every_example_of_the_page(run_dir):
  *_, row = toys.table(run_dir / 'metrics.csv')
  assert float(row['spread']) > 0
  wanted = min(1, 1 / float(row['spread']))
  assert float(row['damped_step']) == pytest.approx(wanted, rel=1e-6)
  assert row['clients_pooled'] == '3'
  flags = (run_dir / 'flags.txt').read_text('utf-8').splitlines()
  assert '--small.units=8' in flags
  assert '--PowerMean.power=2.0' in flags
  assert 0 < float(row['personal_accuracy']) <= 1
  assert '--FreeRider.fraction=0.2' in flags
  assert '--CyclicKL.cycle=5' in flags
  digests = [line for line in flags if line.startswith('# digest of ')]
  assert len(digests) == 13
  assert float(row['cost']) > 0
  counts = np.loadtxt(run_dir / 'partition.csv', delimiter=',', skiprows=1)
  assert counts[:, 1:].sum(1).tolist() == [100, 100, 100]
