"""TensorFlow's own lines do not come before ours, in Python neither."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

_SCRIPT = """
import bfl_tf
config = bfl_tf.Config(dataset='wine', model='logistic', num_rounds=1,
                       num_clients=2, num_workers=1, num_mc_samples=1,
                       final_num_mc_samples=1)
bfl_tf.run(config, 'run')
"""


def test_a_run_in_python_says_our_lines_only(tmp_path):
  env = {k: v for k, v in os.environ.items() if not k.startswith('TF_')}
  done = subprocess.run(
    [sys.executable, '-c', _SCRIPT],
    cwd=tmp_path,
    env={**env, 'PYTHONPATH': os.pathsep.join(sys.path)},
    capture_output=True,
    text=True,
  )
  assert (done.returncode, done.stderr) == (0, '')
  *_, start, played = done.stdout.splitlines()
  assert start.startswith('round 0/1 ') and played.startswith('round 1/1 ')
