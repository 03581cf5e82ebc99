"""Runs here draw no figures."""

import pytest

from bfl_tf import plots


@pytest.fixture(autouse=True)
def no_plots(monkeypatch):
  monkeypatch.setattr(plots, 'draw_run', lambda *unused: [])
