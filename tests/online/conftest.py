"""Replacement of the training of clients in these tests."""

import made
import pytest

from bfl_tf.federation import engine


@pytest.fixture(autouse=True)
def nothing_is_trained(monkeypatch, request):
  if not request.node.get_closest_marker('process'):
    monkeypatch.setattr(engine, 'Local', made.Engine)
