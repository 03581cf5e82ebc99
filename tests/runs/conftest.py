"""Fixture with the outcome of an uninterrupted run."""

import fake
import pytest


@pytest.fixture(scope='session')
def never(tmp_path_factory):
  """The outcome of a run without interruption."""
  path = tmp_path_factory.mktemp('never')
  fake.execute(path)
  return fake.outcome(path)
