"""Runs to compare with."""

import pytest
import stopping

from bfl_tf import plots


@pytest.fixture(autouse=True)
def no_plots(monkeypatch):
  monkeypatch.setattr(plots, 'draw_run', lambda *unused: [])


@pytest.fixture(scope='module')
def never(tmp_path_factory):
  """The outcome of a run that nobody stopped."""
  path = tmp_path_factory.mktemp('never')
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(plots, 'draw_run', lambda *unused: [])
    stopping.play(path)
  return stopping.outcome(path)
