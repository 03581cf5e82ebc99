"""Setup of tests that need the extra `flower`."""

import pathlib

import pytest

pytest.importorskip('flwr')

from flwr.supercore import task_identity

from bfl_tf.flower import messages


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
  """Marks these tests, so that `pytest` without options skips them."""
  for item in items:
    if pathlib.Path(__file__).parent in item.path.parents:
      item.add_marker(pytest.mark.process)


@pytest.fixture(autouse=True)
def trusting(monkeypatch):
  monkeypatch.setenv(messages.OWN_CODE, '1')


@pytest.fixture(autouse=True, scope='session')
def identity():
  """Sets the identity that Flower gives its processes."""
  task = task_identity.TaskIdentity
  task.run_id, task.node_id, task.task_id = 1, 1, 1
