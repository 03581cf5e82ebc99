"""A run goes on with what it was made of, and may become longer."""

import csv
import json
import os
import sys
import textwrap

import numpy as np
import pytest
import stopping

from bfl_tf import own
from bfl_tf import runs as runs_lib
from bfl_tf.federation import loop

CONFIG = stopping.CONFIG.replace(num_rounds=2)


def rows(path):
  with (path / 'metrics.csv').open(newline='') as file:
    return list(csv.DictReader(file))


def npz(path, shift=0.0):
  y = np.arange(30) % 3
  x = np.eye(3)[y] + shift
  np.savez(path, x_train=x, y_train=y, x_test=x, y_test=y)


def test_a_longer_run_is_the_longer_run(tmp_path):
  whole = stopping.play(tmp_path / 'whole', CONFIG.replace(num_rounds=4))
  path = tmp_path / 'extended'
  stopping.play(path, CONFIG)
  # What was asked of the model of that end.
  (path / 'conformal.json').touch()
  for name in ('sites', 'doubt'):
    (path / name).mkdir()
    (path / name / 'scores.json').touch()
  extended = stopping.play(path, CONFIG.replace(num_rounds=4))
  assert extended['final'] == whole['final']
  assert extended['rounds'] == 4
  for name in ('conformal.json', 'sites', 'doubt'):
    assert not (path / name).exists()
  assert [row['round'] for row in rows(path)] == ['0', '1', '2', '3', '4']
  assert json.loads((path / 'summary.json').read_text())['rounds'] == 4
  with pytest.raises(ValueError, match='the run there has 4 rounds'):
    stopping.play(path, CONFIG)


def test_cut_off_while_it_is_extended(tmp_path):
  stopping.play(tmp_path, CONFIG)
  longer = CONFIG.replace(num_rounds=4)
  stopping.stopped(tmp_path, os, 'replace', config=longer, call=1)
  assert not (tmp_path / 'summary.json').exists()
  assert stopping.play(tmp_path, longer)['rounds'] == 4


def test_two_that_extend_together(tmp_path):
  stopping.play(tmp_path, CONFIG)
  longer = CONFIG.replace(num_rounds=3)
  first, second = (
    runs_lib.Run(longer, tmp_path, False, stopping.BUILT) for _ in range(2)
  )
  summary = first.play()
  before = (tmp_path / 'summary.json').stat().st_mtime_ns
  assert second.play() == summary
  assert (tmp_path / 'summary.json').stat().st_mtime_ns == before


def test_a_longer_run_keeps_nothing_of_the_end_of_the_shorter(tmp_path):
  """Its last model may have run away, and write no predictions."""
  stopping.play(tmp_path, CONFIG)
  (tmp_path / 'plots').mkdir()
  (tmp_path / 'members.npz').touch()
  longer = CONFIG.replace(num_rounds=4)
  stopping.stopped(tmp_path, loop, 'federated_round', config=longer, call=1)
  kept = {path.name for path in tmp_path.iterdir()}
  assert not kept & {'summary.json', 'predictions.npz', 'members.npz', 'plots'}


@pytest.mark.parametrize(
  'changes, message',
  [
    (
      {'learning_rate_schedule': 'steps'},
      '--learning_rate_schedule=steps is laid out over all rounds',
    ),
    (
      {'partition': f'{__name__}:by_rounds'},
      '--partition=by_rounds is made for a number of rounds',
    ),
  ],
)
def test_what_depends_on_all_rounds_is_not_extended(tmp_path, changes, message):
  config = CONFIG.replace(**changes)
  stopping.play(tmp_path, config)
  with pytest.raises(ValueError, match=message):
    stopping.play(tmp_path, config.replace(num_rounds=4))
  assert stopping.play(tmp_path, config)['rounds'] == 2


def by_rounds(labels, num_clients, num_rounds):
  return np.array_split(np.arange(len(labels)), num_clients)


def test_a_run_of_other_data_is_refused(tmp_path):
  file, path = tmp_path / 'data.npz', tmp_path / 'run'
  npz(file)
  config = CONFIG.replace(dataset=str(file))
  stopping.play(path, config)
  assert stopping.play(path, config)['rounds'] == 2
  npz(file, shift=1.0)
  with pytest.raises(ValueError, match=r'data\.npz names has changed since'):
    stopping.play(path, config)


SOURCE = """
  import numpy as np

  SHIFT = 0.0

  def used(x):
    return x + SHIFT

  def data():
    y = np.arange(30) % 3
    return used(np.eye(3)[y]), y, np.eye(3)[y], y

  def unused():
    return 1
"""


@pytest.mark.parametrize(
  'old, new, same',
  [
    ('', '# A comment.\n', True),
    ('return 1', 'return 2', True),
    ('return x + SHIFT', 'return x - SHIFT', False),
    ('SHIFT = 0.0', 'SHIFT = 1.0', False),
    ('% 3', '% 2', False),
  ],
)
def test_a_digest_is_of_what_a_function_uses(
  tmp_path, monkeypatch, old, new, same
):
  before, after = textwrap.dedent(SOURCE), textwrap.dedent(SOURCE)
  after = after.replace(old, new, 1)
  (tmp_path / 'digested_before.py').write_text(before)
  (tmp_path / 'digested_after.py').write_text(after)
  monkeypatch.syspath_prepend(tmp_path)
  names = ['digested_before', 'digested_after']
  digests = {own.digest(f'{name}:data') for name in names}
  for name in names:
    del sys.modules[name]
  assert (len(digests) == 1) == same
