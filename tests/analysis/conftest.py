"""One finished run on three sites, which every test here may copy."""

import shutil

import pytest
import site_data


@pytest.fixture(scope='session')
def sites_run(tmp_path_factory):
  """A run with a calibration share; not to be written into."""
  return site_data.play(tmp_path_factory.mktemp('sites'))


@pytest.fixture
def sites_copy(sites_run, tmp_path):
  """The same, to be written into."""
  return shutil.copytree(sites_run, tmp_path / 'copy')
