"""Fixtures: a finished run on three sites, and copies of it."""

import shutil

import pytest
import site_data


@pytest.fixture(scope='session')
def sites_run(tmp_path_factory):
  """A run with a calibration share, which tests must not change."""
  return site_data.execute(tmp_path_factory.mktemp('sites'))


@pytest.fixture
def sites_copy(sites_run, tmp_path):
  """A copy of the run, which tests may change."""
  return shutil.copytree(sites_run, tmp_path / 'copy')
