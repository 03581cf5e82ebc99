"""Tests of the rows of a run, and of the trend of its loss."""

import numpy as np
import pytest

from bfl_tf import files
from bfl_tf.runs import progress, tables


def test_rows_keep_their_types_after_a_resume(tmp_path):
  path = tmp_path / 'metrics.csv'
  before = tables.Rows(path)
  before.add({'round': 0, 'nll': np.float32(0.1), 'train_seconds': 2.5})
  for number in (1, 2, 3):
    row = {'round': number, 'nll': 1 / 3, 'rejected': '1', 'steps': np.int64(9)}
    before.add(row | {'why': None, 'rejected_reasons': 'a, "b"\nc'})
  assert before[0] == {'round': 0, 'nll': 0.1, 'train_seconds': 2.5}
  assert before[1]['steps'] == 9 and before[1]['rejected'] == '1'
  text = path.read_bytes()
  header = b'round,nll,rejected,steps,why,rejected_reasons,train_seconds\r\n'
  assert text.startswith(header + b'0,0.1,,,,,2.5\r\n')
  after = tables.Rows(path)
  with pytest.raises(files.UnreadableError, match='no row of round 4'):
    after.resume(4)
  after.resume(2)
  assert list(after) == before[:3] and text.startswith(path.read_bytes())
  after.add(before[3])
  assert path.read_bytes() == text


@pytest.mark.parametrize('cut', [2, 3, 40])
def test_an_incomplete_last_line_is_ignored(tmp_path, cut):
  path = tmp_path / 'metrics.csv'
  whole = tables.Rows(path)
  for number in range(3):
    whole.add({'round': number, 'nll': 1 / 3, 'why': 'a, "b"'})
  path.write_bytes(path.read_bytes()[:-cut])
  assert tables.read(path) == whole[: 2 if cut < 40 else 1]


@pytest.mark.parametrize(
  'losses, expected',
  [
    (np.exp(-np.arange(50) / 5), ''),
    (np.exp(-np.arange(50) / 30), 'falls'),
    (1 - np.exp(-np.arange(50) / 30), 'rises'),
    # Noise around a constant is no trend.
    (np.random.default_rng(0).normal(size=50), ''),
    (np.arange(9), ''),
    ([*range(49), np.nan], ''),
  ],
)
def test_a_loss_that_still_changes_is_found(losses, expected):
  assert progress.trend(losses) == expected
  assert progress.trend([1e6 * loss for loss in losses]) == expected
