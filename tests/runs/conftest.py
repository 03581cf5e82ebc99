"""Runs to compare with."""

import fake
import pytest


@pytest.fixture(scope='session')
def never(tmp_path_factory):
  """The outcome of a run that nobody stopped."""
  path = tmp_path_factory.mktemp('never')
  fake.play(path)
  return fake.outcome(path)
