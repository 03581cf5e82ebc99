"""Tests that help texts and errors do not import TensorFlow."""

import subprocess
import sys

import pytest

_SLOW = {'tensorflow', 'tensorflow_probability', 'tf_keras'}


@pytest.mark.process
@pytest.mark.parametrize(
  'module',
  ['experiments.run', 'experiments.sweep', 'experiments.compare'],
)
def test_a_binary_is_imported_without_tensorflow(module):
  code = f"""
import sys, {module}
from bfl_tf.config import catalog, config
assert catalog.known_settings()
assert not set(sys.modules) & {_SLOW}
"""
  subprocess.run([sys.executable, '-c', code], check=True)
