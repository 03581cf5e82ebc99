"""Tests that help texts and errors do not import TensorFlow."""

import subprocess
import sys

import pytest

_CODE = """
import sys, {}
from bfl_tf.config import catalog
assert catalog.known_settings()
slow = {{'tensorflow', 'tensorflow_probability', 'tf_keras'}}
assert not slow & sys.modules.keys()
"""


@pytest.mark.process
@pytest.mark.parametrize('module', ['experiments.run', 'experiments.sweep'])
def test_a_binary_is_imported_without_tensorflow(module):
  subprocess.run([sys.executable, '-c', _CODE.format(module)], check=True)
