"""These tests need the extra `flower`, and run code of their own on nodes."""

import pathlib

import pytest

pytest.importorskip('flwr')

from flwr.supercore import task_identity

from bfl_tf.flower import messages


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
  """A plain `pytest` runs none of them, whatever is installed."""
  for item in items:
    if pathlib.Path(__file__).parent in item.path.parents:
      item.add_marker(pytest.mark.process)


@pytest.fixture(autouse=True)
def trusting(monkeypatch):
  monkeypatch.setenv(messages.OWN_CODE, '1')


@pytest.fixture(autouse=True, scope='session')
def identity():
  """What Flower's processes are given: a message says who it is from."""
  task = task_identity.TaskIdentity
  task.run_id, task.node_id, task.task_id = 1, 1, 1
