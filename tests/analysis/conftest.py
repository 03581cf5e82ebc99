"""Fixture: a finished run on three sites."""

import pytest
import site_data


@pytest.fixture(scope='session')
def sites_run(tmp_path_factory):
  """A run with a calibration share, which tests must not change."""
  return site_data.execute(tmp_path_factory.mktemp('sites'))
