"""Tests of the errors of `load`."""

import fake
import pytest

import bfl_tf


@pytest.mark.parametrize(
  'missing, reason',
  [
    ('flags.txt', '--output_dir'),
    ('summary.json', 'unfinished'),
    ('checkpoint.npz', 'checkpoint'),
  ],
)
def test_an_incomplete_run_directory_is_rejected_with_the_reason(
  tmp_path, missing, reason
):
  fake.execute(tmp_path)
  assert bfl_tf.load(tmp_path).config == fake.CONFIG
  (tmp_path / missing).unlink()
  with pytest.raises(ValueError, match=reason):
    bfl_tf.load(tmp_path)
