"""Tests of the errors of `load`."""

import fake
import pytest

import bfl_tf


@pytest.mark.parametrize(
  'lost, what',
  [
    ('flags.txt', '--output_dir'),
    ('summary.json', 'unfinished'),
    ('checkpoint.npz', 'checkpoint'),
  ],
)
def test_what_is_no_finished_run(tmp_path, lost, what):
  fake.play(tmp_path)
  assert bfl_tf.load(tmp_path).config == fake.CONFIG
  (tmp_path / lost).unlink()
  with pytest.raises(ValueError, match=what):
    bfl_tf.load(tmp_path)
