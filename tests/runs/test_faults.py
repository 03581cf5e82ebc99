"""What happens to a run's directory: other processes, damaged files, a disk."""

import os
import resource
import subprocess
import sys

import numpy as np
import pytest
import stopping

from bfl_tf import federation, plots
from bfl_tf import runs as runs_lib
from bfl_tf.federation import loop
from bfl_tf.runs import checkpoints
from bfl_tf.runs import directory as records

pytestmark = pytest.mark.process

HOLD = (
  'import filelock, sys; lock = filelock.FileLock(sys.argv[1]);'
  'lock.acquire(); print("held", flush=True); sys.stdin.read()'
)


def hold(path):
  """Another process that plays a run, for all that we can see."""
  path.mkdir(exist_ok=True)
  process = subprocess.Popen(
    [sys.executable, '-c', HOLD, str(path / '.lock')],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
  )  # fmt: skip
  process.stdout.readline()
  return process


def test_one_process_a_run(never, tmp_path):
  other = hold(tmp_path)
  with pytest.raises(runs_lib.BusyError, match='is in use by another proces'):
    stopping.play(tmp_path)
  assert [path.name for path in tmp_path.iterdir()] == ['.lock']
  other.communicate()
  stopping.play(tmp_path)
  assert stopping.outcome(tmp_path) == never


def test_what_is_refused_leaves_no_lock(tmp_path):
  with pytest.raises(ValueError, match='exceeds'):
    stopping.play(
      tmp_path, stopping.CONFIG.replace(num_clients=999, clients_per_round=0)
    )
  assert not list(tmp_path.iterdir())


def test_two_that_begin_together(tmp_path):
  path = tmp_path / 'run'
  first, same, other = (
    runs_lib.Run(
      stopping.CONFIG.replace(seed=seed), path, False, stopping.BUILT
    )
    for seed in (0, 0, 1)
  )
  summary = first.play()
  assert same.play() == summary
  with pytest.raises(ValueError, match='holds another run; --seed differ'):
    other.play()


def test_a_finished_run_that_cannot_be_written_is_read(tmp_path, monkeypatch):
  summary = stopping.play(tmp_path)
  monkeypatch.setattr(os, 'access', lambda path, mode: mode != os.W_OK)
  assert stopping.play(tmp_path) == summary
  (tmp_path / 'summary.json').unlink()
  with pytest.raises(ValueError, match=f'{tmp_path} cannot be written'):
    stopping.play(tmp_path)


def test_a_lost_figure_is_drawn_by_who_draws(tmp_path, monkeypatch, caplog):
  figure = tmp_path / 'plots' / 'accuracy.png'

  def draw(*unused):
    figure.parent.mkdir(exist_ok=True)
    figure.write_bytes(b'drawn')
    return [figure]

  monkeypatch.setattr(plots, 'draw_run', draw)
  summary = stopping.play(tmp_path)
  figure.unlink()

  # Who draws none takes the run as it is, and a wrong figure not for the right.
  def figureless():
    return runs_lib.Run(
      stopping.CONFIG, tmp_path, False, stopping.BUILT, draw_plots=False
    )

  assert figureless().play() == summary
  figure.write_bytes(b'wrong')
  damaged(tmp_path / 'predictions.npz', 'cut')
  summary = figureless().play()
  assert (tmp_path / 'predictions.npz').exists()
  assert figure.read_bytes() == b'wrong'

  with monkeypatch.context() as patch:
    patch.setattr(os, 'access', lambda path, mode: mode != os.W_OK)
    assert stopping.play(tmp_path) == summary
  assert 'plots/accuracy.png is missing or damaged, and' in caplog.text
  assert 'the directory cannot be written' in caplog.text

  assert stopping.play(tmp_path) == summary
  assert figure.read_bytes() == b'drawn'


def damaged(path, how):
  data = path.read_bytes()
  if how == 'missing':
    path.unlink()
  elif how == 'cut':
    path.write_bytes(data[: len(data) // 2])
  else:
    middle = len(data) // 2
    path.write_bytes(data[:middle] + b'\xff\xff\xff' + data[middle + 3 :])


@pytest.mark.parametrize('how', ['missing', 'cut', 'changed'])
@pytest.mark.parametrize('name', ['summary.json', 'predictions.npz'])
def test_a_finished_run_makes_what_is_damaged_anew(never, tmp_path, name, how):
  stopping.play(tmp_path)
  damaged(tmp_path / name, how)
  stopping.play(tmp_path)
  assert stopping.outcome(tmp_path) == never


def digit_changed(path):
  """Of the last number: nothing but a checksum can tell."""
  text = path.read_text()
  place = max(i for i, letter in enumerate(text) if letter.isdigit())
  other = '1' if text[place] != '1' else '2'
  path.write_text(text[:place] + other + text[place + 1 :])


@pytest.mark.parametrize(
  'name', ['metrics.csv', 'summary.json', 'task.json', 'partition.csv']
)
def test_a_finished_run_makes_a_changed_digit_anew(never, tmp_path, name):
  stopping.play(tmp_path)
  before = (tmp_path / name).read_text()
  digit_changed(tmp_path / name)
  stopping.play(tmp_path)
  assert stopping.outcome(tmp_path) == never
  if name in ('task.json', 'partition.csv'):
    assert (tmp_path / name).read_text() == before


@pytest.mark.parametrize('name', ['task.json', 'partition.csv', 'metrics.csv'])
def test_an_unfinished_run_makes_a_changed_digit_anew(never, tmp_path, name):
  stopping.stopped(tmp_path, loop, 'federated_round', 4)
  before = (tmp_path / name).read_text()
  digit_changed(tmp_path / name)
  stopping.play(tmp_path)
  assert stopping.outcome(tmp_path) == never
  if name != 'metrics.csv':
    assert (tmp_path / name).read_text() == before


def test_a_changed_digit_of_a_row_that_is_lost_is_said(tmp_path):
  stopping.stopped(tmp_path, loop, 'federated_round', 4)
  header, first, *rows = (tmp_path / 'metrics.csv').read_text().splitlines()
  text = '\n'.join([header, f'{first}1', *rows, ''])
  (tmp_path / 'metrics.csv').write_text(text)
  with pytest.raises(
    ValueError, match=r'metrics\.csv has whole rows of its firs'
  ):
    stopping.play(tmp_path)


def test_checksums_that_cannot_be_trusted_are_none(never, tmp_path):
  stopping.stopped(tmp_path, loop, 'federated_round', 4)
  data = (tmp_path / '.digests').read_bytes()
  (tmp_path / '.digests').write_bytes(data[:50] + b'x' + data[51:])
  stopping.play(tmp_path)
  assert stopping.outcome(tmp_path) == never


def test_a_last_checkpoint_that_is_lost_is_made_anew(never, tmp_path):
  stopping.play(tmp_path)
  for path in (tmp_path / 'checkpoints').glob('state-4*'):
    path.write_bytes(path.read_bytes()[:9])
  stopping.play(tmp_path)
  assert stopping.outcome(tmp_path) == never
  assert checkpoints.restore(tmp_path / 'checkpoints').round == 4


@pytest.mark.parametrize('how', ['missing', 'cut', 'changed'])
def test_flags_that_were_damaged_are_called_that(tmp_path, how):
  stopping.stopped(tmp_path, loop, 'federated_round', 2)
  damaged(tmp_path / 'flags.txt', how)
  with pytest.raises(ValueError, match=r'flags\.txt') as caught:
    stopping.play(tmp_path)
  if how != 'missing':
    assert 'not as it was written' in str(caught.value)


def test_any_damage_to_predictions_is_seen(tmp_path):
  directory = records.RunDirectory(tmp_path)
  path = tmp_path / 'predictions.npz'
  labels, probs = np.arange(99) % 3, np.linspace(0, 1, 99)
  directory.write_arrays('predictions', labels=labels, probs=probs)
  data = path.read_bytes()
  found = set()
  for place in range(len(data)):
    path.write_bytes(data[:place] + b'\xff' + data[place + 1 :])
    found.add(directory.has_predictions())
  # A changed time stamp is no damage.
  assert found == {True, False}


def test_scores_of_other_rounds_are_not_the_last_ones(never, tmp_path):
  """As of a set with a rare class, where the last model ran away."""
  stopping.play(tmp_path)
  (tmp_path / 'summary.json').unlink()
  # As of a version that wrote no checksums.
  (tmp_path / '.digests').unlink()
  header, *rows = (tmp_path / 'metrics.csv').read_text().splitlines()
  rows = [f'{row},0.5' for row in rows[:-1]] + [f'{rows[-1]},']
  text = '\n'.join([f'{header},balanced_accuracy', *rows, ''])
  (tmp_path / 'metrics.csv').write_text(text)
  assert stopping.play(tmp_path)['final'] == never[2]


@pytest.mark.parametrize('left', [0, 1])
def test_without_checkpoints_it_says_so(tmp_path, caplog, left):
  summary = stopping.play(tmp_path)
  (tmp_path / 'predictions.npz').unlink()
  for path in (tmp_path / 'checkpoints').iterdir():
    if not left or path.name.startswith('state-3'):
      path.unlink()
  assert stopping.play(tmp_path) == summary
  assert 'predictions.npz' in caplog.text
  assert 'missing or damaged, and no checkpoint is left to mak' in caplog.text


def cut_rows(path, lines, tail=''):
  text = (path / 'metrics.csv').read_text().splitlines(keepends=True)
  (path / 'metrics.csv').write_text(''.join(text[:lines]) + tail)


@pytest.mark.parametrize('tail', ['', '3,0.5', '3,0.5\n', 'nonsense\n'])
def test_rows_that_are_cut_are_played_again(never, tmp_path, tail):
  stopping.stopped(tmp_path, loop, 'federated_round', 4)
  # Rounds 0 to 2 are left, and so are the checkpoints of rounds 2 and 3.
  cut_rows(tmp_path, 4, tail)
  stopping.play(tmp_path)
  assert stopping.outcome(tmp_path) == never


@pytest.mark.parametrize('lines', [0, 1, 2, 3])
def test_rows_that_no_checkpoint_can_make_are_missed(tmp_path, lines):
  stopping.stopped(tmp_path, loop, 'federated_round', 4)
  cut_rows(tmp_path, lines)
  before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob('*')}
  message = (
    rf'metrics.csv has whole rows of its first {max(0, lines - 1)} rounds '
    'only, and the oldest checkpoint is of round 2: put the file back'
  )
  with pytest.raises(ValueError, match=message):
    stopping.play(tmp_path)
  assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob('*')} == before


def test_what_does_not_belong_among_the_checkpoints(never, tmp_path):
  stopping.stopped(tmp_path, loop, 'federated_round', 4)
  folder = tmp_path / 'checkpoints'
  (folder / 'checkpoint').write_bytes(b'\xff\xfe')
  (folder / 'state-x.index').write_text('')
  (folder / 'state-.index').write_text('')
  (folder / 'state-3_temp').mkdir()
  (folder / 'state-3_temp' / 'part-00000-of-00001').write_text('half')
  stopping.play(tmp_path)
  assert stopping.outcome(tmp_path) == never
  assert not (folder / 'state-3_temp').exists()
  assert checkpoints.rounds(folder) == [4, 3]


def test_a_file_that_may_not_grow(never, tmp_path, monkeypatch):
  """As on a full disk: what was played is there, and the run goes on."""
  limit = resource.getrlimit(resource.RLIMIT_FSIZE)
  original, calls = loop.federated_round, []

  def limited(*args):
    calls.append(1)
    if len(calls) == 3:
      resource.setrlimit(resource.RLIMIT_FSIZE, (200, limit[1]))
    return original(*args)

  monkeypatch.setattr(loop, 'federated_round', limited)
  try:
    with pytest.raises(federation.MachineError) as caught:
      stopping.play(tmp_path)
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)
  assert 'File too large' in str(caught.value)
  assert 'saved after round 2; the same command goes on' in str(caught.value)
  stopping.play(tmp_path)
  assert stopping.outcome(tmp_path) == never


def test_a_disk_that_is_full_at_the_start(never, tmp_path):
  limit = resource.getrlimit(resource.RLIMIT_FSIZE)
  run = runs_lib.Run(stopping.CONFIG, tmp_path, False, stopping.BUILT)
  resource.setrlimit(resource.RLIMIT_FSIZE, (200, limit[1]))
  try:
    with pytest.raises(
      federation.MachineError, match='nothing is saved yet; t'
    ):
      run.play()
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)
  stopping.play(tmp_path)
  assert stopping.outcome(tmp_path) == never


def test_a_row_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
  said = []
  for name in ('fsync', 'replace'):
    original = getattr(os, name)
    monkeypatch.setattr(
      os, name, lambda *a, f=original, n=name: (said.append(n), f(*a))[1]
    )
  directory = records.RunDirectory(tmp_path)
  directory.rows = [{'round': 0, 'accuracy': np.float32(0.5)}]
  directory.write_rows()
  # Its checksum before it.
  assert said == ['fsync', 'fsync', 'replace', 'replace']
