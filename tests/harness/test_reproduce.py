"""The binary: every artifact and claim at smoke scale, and what goes wrong."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

from absl.testing import flagsaver
import binaries
import psutil
import pytest

from bfl_tf.runs import directory as records
from experiments import artifacts, reproduce
from experiments.harness import cells, estimates, runner, tables

pytestmark = pytest.mark.process

_CORES = len(os.sched_getaffinity(0))
_ONE_CLAIM = {'claim': ['fedbe/swa_beats_sgd'], 'scale': 'overnight'}


def _run(**flags):
  with flagsaver.flagsaver(**flags):
    return reproduce.main()


@pytest.fixture(scope='module')
def results(tmp_path_factory):
  """One run per method; every other cell built and validated."""
  root = tmp_path_factory.mktemp('reproduce')
  everything = {'artifact': ['all'], 'claim': ['all'], 'scale': 'smoke'}
  code = _run(output_dir=str(root), sample=True, **everything)
  assert code == 3  # One seed decides no claim.
  return root


def test_every_artifact_is_written(results):
  for name, artifact in artifacts.ARTIFACTS.items():
    if isinstance(artifact, tables.Table):
      text = (results / 'smoke' / f'{name}.md').read_text()
      assert 'nan' not in text
      assert ('[published]' in text) == artifact.is_published
  for name in (
    'posterior_pooling/figure3_iid', 'fedbe/figure1_data',
    'fedbe/figure1_simplex', 'fedbe/figure3_ResNet20',
    'fedbe/figure9_swiss_roll', 'noniid_techniques/figure1_four_points',
  ):  # fmt: skip
    assert (results / 'smoke' / f'{name}.png').stat().st_size > 1000
  assert not list((results / 'smoke').rglob('*failure.txt'))


def test_one_per_method(results):
  chosen = estimates.one_per_method(
    estimates.tasks(
      (*artifacts.ARTIFACTS.values(), *artifacts.CLAIMS.values()),
      'smoke',
      results,
    )
  )
  assert all(task.is_done for task in chosen)
  assert {task.config.pooling for task in chosen} == {
    'nwa', 'ws', 'lp', 'wc', 'conflation', 'dwc', 'product', 'median',
    'trimmed_mean', 'multi_krum',
  }  # fmt: skip


def test_finished_runs_are_not_run_again(results, monkeypatch):
  task = cells.Task(
    artifacts.ARTIFACTS['posterior_pooling/table1'].cells[0],
    'smoke', 0, results,
  )  # fmt: skip
  monkeypatch.setattr(runner, 'run_one', None)
  assert task.is_done and runner.run_all([task], 1, False) == []


def test_a_task_under_way_elsewhere_is_left_alone(tmp_path):
  cell = artifacts.ARTIFACTS['posterior_pooling/table1'].cells[0]
  task = cells.Task(cell, 'smoke', 0, tmp_path)
  task.directory.mkdir(parents=True)
  hold = (
    'import filelock, sys; lock = filelock.FileLock(sys.argv[1]);'
    'lock.acquire(); print("held", flush=True); sys.stdin.read()'
  )
  other = subprocess.Popen(
    [sys.executable, '-c', hold, f'{task.directory}/.lock'],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
  )  # fmt: skip
  other.stdout.readline()
  assert runner.run_one(task, 0).status == 'busy'
  other.communicate()
  assert [path.name for path in task.directory.iterdir()] == ['.lock']


@pytest.mark.parametrize('jobs', [1, 2])
def test_a_failing_cell_leaves_the_others_running(tmp_path, jobs):
  paper = cells.Paper(
    'posterior_pooling', artifacts.posterior_pooling.PAPER.scales
  )
  bad = cells.Cell(paper, 'bad', {'client_learning_rate': 1e38})
  good = cells.Cell(paper, 'good', {'variant': 'deterministic'})
  tasks = [cells.Task(c, 'smoke', 0, tmp_path) for c in (bad, good)]
  outcomes = {
    o.task.cell.name: o.status for o in runner.run_all(tasks, jobs, False)
  }
  assert outcomes['good'] == 'done'
  assert outcomes['bad'].startswith('TooFewClientsError')
  assert tasks[0].failure == outcomes['bad']


def test_who_dies_alone_is_blamed_and_nobody_else(monkeypatch, tmp_path):
  paper = artifacts.posterior_pooling.PAPER
  tasks = [
    cells.Task(cells.Cell(paper, name, {}), 'smoke', 0, tmp_path)
    for name in ('first', 'deadly', 'last')
  ]

  def until_one_dies(waiting, jobs):
    # All that run beside one that dies die with it.
    waiting = list(waiting)
    while waiting and 'deadly' not in {t.cell.name for t in waiting[:jobs]}:
      yield runner.Outcome(waiting.pop(0), 'done')

  monkeypatch.setattr(runner, '_side_by_side', until_one_dies)
  found = {o.task.cell.name: o.status for o in runner._outcomes(tasks, 2)}
  assert found == {
    'first': 'done', 'deadly': 'its process died', 'last': 'done',
  }  # fmt: skip
  assert [t.failure for t in tasks] == [None, 'its process died', None]


def test_list(results, capsys):
  assert _run(list=True, output_dir=str(results)) is None
  lines = capsys.readouterr().out.splitlines()
  listed = {line.split()[0] for line in lines}
  assert listed >= {*artifacts.ARTIFACTS, *artifacts.CLAIMS}
  table1 = next(
    line
    for line in lines
    if line.endswith('table1') or line.startswith('posterior_pooling/table1 ')
  )
  assert 'done' in table1 and 'never run' in table1
  assert 'smoke: ' in lines[-1] and 'overnight' not in lines[-1]


def test_the_cost_goes_by_what_finished_runs_took(tmp_path, monkeypatch):
  def cost():
    return float(estimates.listing(tmp_path).splitlines()[1].split()[1])

  table = artifacts.ARTIFACTS['posterior_pooling/table5']
  monkeypatch.setattr(artifacts, 'ARTIFACTS', {'table5': table})
  monkeypatch.setattr(artifacts, 'CLAIMS', {})
  first, second, *others = estimates.tasks([table], 'smoke', tmp_path)
  left = sum(map(estimates.core_seconds, others))
  for task, workers in ((first, 2), (second, 0)):
    directory = records.RunDirectory(task.directory)
    with directory.locked():
      directory.start(task.config.replace(num_workers=workers))
    (task.directory / 'summary.json').write_text('{"final": {}}')
    seconds = 1000 * estimates.core_seconds(task) / (workers or _CORES)
    # Two seconds of it are the start.
    (task.directory / 'metrics.csv').write_text(
      'round,train_seconds,evaluate_seconds\n'
      f'0,,3\n1,{seconds / 4},\n2,{seconds * 3 / 4 - 10},5\n'
    )
  assert cost() == pytest.approx(1000 * left / 60 / _CORES, rel=0.01)


@pytest.mark.parametrize('sent, code', [('SIGKILL', -9), ('SIGTERM', 143)])
def test_processes_end_with_the_one_that_is_stopped(sent, code, tmp_path):
  """Or runs would stay locked, by processes that nobody knows."""
  process = binaries.start(
    'experiments.reproduce', '--scale=laptop', '--jobs=2',
    '--artifact=priors/scores', f'--output_dir={tmp_path}',
  )  # fmt: skip
  children, deadline = [], time.monotonic() + 200
  try:
    while len([*tmp_path.rglob('flags.txt')]) < 2:
      assert process.poll() is None and time.monotonic() < deadline
      time.sleep(0.1)
    children = psutil.Process(process.pid).children()
    process.send_signal(getattr(signal, sent))
    _, said = process.communicate(timeout=20)
    assert psutil.wait_procs(children, timeout=10)[1] == []
  finally:
    for one in (process, *children):
      with contextlib.suppress(psutil.NoSuchProcess):
        one.kill()
  assert process.returncode == code
  assert sent == 'SIGKILL' or said.endswith(': the same command goes on\n')


@pytest.mark.parametrize(
  ('flags', 'message'),
  [
    ({'artifact': ['posterior_pooling/tabel2']}, 'posterior_pooling/table2'),
    ({'claim': ['lp_last']}, 'posterior_pooling/lp_last_at_one_epoch'),
    ({'scale': 'huge'}, '--scale=huge'),
    ({}, 'give --list, --verdicts, --artifact or --claim'),
    ({**_ONE_CLAIM, 'seeds': ['0', 'x']}, '--seeds=0,x must be a comma-sepa'),
    ({**_ONE_CLAIM, 'seeds': ['0', '3']}, '--seeds=0,3 must be of 0 to 2'),
    ({**_ONE_CLAIM, 'seeds': ['-1']}, '--seeds=-1 must be of 0 to 2'),
    ({**_ONE_CLAIM, 'seeds': []}, '--seeds= must be of 0 to 2'),
    ({'seeds': ['0'], 'verdicts': True}, 'leave --seeds'),
    ({'cells': 'lenet5', 'list': True}, 'leave --seeds and --cells'),
    ({**_ONE_CLAIM, 'cells': 'lenet6'}, '--cells=lenet6 is in no place of a'),
  ],
)
def test_bad_input(flags, message, tmp_path, capsys):
  with pytest.raises(SystemExit) as stopped:
    _run(output_dir=str(tmp_path / 'new'), **flags)
  error = capsys.readouterr().err
  assert stopped.value.code == 2 and message in error
  assert error.count('\n') == 1
  assert not pathlib.Path(tmp_path / 'new').exists()


@pytest.fixture
def ran(monkeypatch):
  """The tasks that would be run."""
  found = []
  monkeypatch.setattr(
    runner, 'run_all', lambda tasks, _: found.extend(tasks) or []
  )
  return found


def test_cells_are_run_by_their_place(tmp_path, ran):
  # By epochs, 20 are FL-SWAG's own run.
  artifacts_ = {'artifact': ['fl_swag/table_deep', 'fl_swag/by_epochs']}
  cells_ = 'lenet5/mnist/fl-swag'
  _run(output_dir=str(tmp_path), scale='paper', cells=cells_, **artifacts_)
  place = tmp_path / 'paper' / 'fl_swag' / cells_
  assert [task.directory for task in ran] == [
    place / f'seed{seed}' for seed in range(3)
  ]


def test_seeds_are_run_and_judged_alone(tmp_path, ran, capsys):
  code = _run(output_dir=str(tmp_path), seeds=['0', '2'], **_ONE_CLAIM)
  assert code == 3
  assert {task.seed for task in ran} == {0, 2} and len(ran) == 4
  printed = capsys.readouterr().out
  assert 'overnight scale, seeds 0, 2 of 3 planned: no test' in printed


@pytest.mark.parametrize(
  'failed, wanted, code',
  [
    (1, {'artifact': ['fedbe/table1']}, 1),
    (1, {'artifact': ['fedbe/table1'], **_ONE_CLAIM}, 1),
    (1, _ONE_CLAIM, 0),
    (0, {'artifact': ['fedbe/table1'], **_ONE_CLAIM}, 0),
  ],
)
def test_a_claim_that_holds_hides_no_failure(
  tmp_path, monkeypatch, failed, wanted, code
):
  for name, found in (('_play', failed), ('_write', 0), ('_judge', 0)):
    monkeypatch.setattr(reproduce, name, lambda *_, found=found: found)
  assert _run(output_dir=str(tmp_path), **wanted) == code


def test_verdicts_of_every_claim(results, capsys):
  assert _run(verdicts=True, output_dir=str(results)) is None
  printed = capsys.readouterr().out
  assert all(f'| **{name}**' in printed for name in artifacts.CLAIMS)
  assert (results / 'verdicts.md').read_text().strip() == printed.strip()
  lines = (results / 'verdicts.csv').read_text().splitlines()
  comparisons = sum(len(c.comparisons) for c in artifacts.CLAIMS.values())
  assert len(lines) == 1 + 3 * comparisons


def test_results_of_another_version_are_refused(tmp_path, capsys):
  (tmp_path / 'version.txt').write_text('bfl_tf 0.0.1\n')
  with pytest.raises(SystemExit):
    _run(output_dir=str(tmp_path), list=True)
  assert 'bfl_tf 0.0.1' in capsys.readouterr().err
  # What a full disk leaves.
  (tmp_path / 'version.txt').write_text('')
  assert _run(output_dir=str(tmp_path), list=True) is None
