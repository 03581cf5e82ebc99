"""Tests of the binary experiments.reproduce."""

import contextlib
import time

from absl.testing import flagsaver
import binaries
import fake
import psutil
import pytest

from bfl_tf import runs
from bfl_tf.federation import evaluation
from bfl_tf.runs import directory, executor
from experiments import papers, reproduce
from experiments.harness import cells, status, tables

_ONE_CLAIM = {'claim': ['fedbe/swa_beats_sgd'], 'scale': 'overnight'}
# The smallest artifact of each paper, with some of its cells.
_SMALLEST = {
  'posterior_pooling/table1': 'centralized/flipout',
  'fedbe/figure9': 'swiss_roll',
  'noniid_techniques/figure1': 'toy/federated',
  'fl_swag/data_split': 'logistic',
  'board/splits': 'iid/fednova',
}


def _run(root, **flags):
  flags = {'scale': 'smoke', **flags}
  with flagsaver.flagsaver(output_dir=str(root), **flags):
    return reproduce.main()


def _tasks(root, *names):
  paper = papers.posterior_pooling.PAPER
  made = [cells.Cell(paper, name, {'server_split': name}) for name in names]
  return [cells.Task(cell, 'smoke', 0, root) for cell in made]


@pytest.fixture(scope='module')
def root(tmp_path_factory):
  return tmp_path_factory.mktemp('reproduce')


@pytest.mark.parametrize('name', _SMALLEST)
def test_the_smallest_artifact_of_each_paper_is_run_and_written(root, name):
  flags = {'artifact': [name], 'cells': _SMALLEST[name]}
  assert _run(root, seeds=['0'], jobs=1, **flags) == 0
  assert [*(root / 'smoke').glob(f'{name}*')]
  task, *_ = [
    task
    for task in status.tasks([papers.ARTIFACTS[name]], 'smoke', root)
    if _SMALLEST[name] in str(task.directory)
  ]
  assert task.is_done


def test_all_artifacts_and_claims_are_written_without_runs(tmp_path):
  assert _run(tmp_path, run=False, artifact=['all'], claim=['all']) == 3
  for name, artifact in papers.ARTIFACTS.items():
    if isinstance(artifact, tables.Table):
      text = (tmp_path / 'smoke' / f'{name}.md').read_text('utf-8')
      assert 'nan' not in text
      assert ('[published]' in text) == artifact.is_published


@pytest.mark.slow
def test_figures_are_drawn_and_every_cell_is_valid(tmp_path):
  drawn = {
    'posterior_pooling/figure3': ('iid',),
    'fedbe/figure1': ('data', 'simplex'),
    'fedbe/figure9': ('swiss_roll',),
    'fedbe/figure12': ('ResNet20',),
    'noniid_techniques/figure1': ('four_points',),
  }
  assert _run(tmp_path, artifact=[*drawn], jobs=1) == 0
  for name, panels in drawn.items():
    for panel in panels:
      path = tmp_path / 'smoke' / f'{name}_{panel}.png'
      assert path.stat().st_size > 1000
  for task in status.tasks(papers.ARTIFACTS.values(), 'smoke', tmp_path):
    executor.validate(task)


def test_a_failing_cell_does_not_stop_other_cells(tmp_path, monkeypatch):
  def run(config, path, *rest, **options):
    if 'bad' in str(path):
      raise ValueError('--model is bad.')
    return original(config, path, *rest, engine=fake.engine, **options)

  original = runs.Run
  monkeypatch.setattr(runs, 'Run', run)
  monkeypatch.setattr(evaluation, 'evaluate', fake.evaluate)
  tasks = bad, good = _tasks(tmp_path, 'bad', 'good')
  found = {
    outcome.task.cell.name: outcome.status
    for outcome in executor.run_all(tasks, 1)
  }
  assert found == {'bad': 'ValueError: --model is bad.', 'good': 'done'}
  assert bad.failure == found['bad'] and good.is_done
  # Only failed runs are repeated.
  again = executor.run_all(tasks, 1)
  assert [outcome.task for outcome in again] == [bad]


def test_a_task_that_another_process_runs_is_skipped(tmp_path):
  (task,) = _tasks(tmp_path, 'busy')
  task.directory.mkdir(parents=True)
  with directory.RunDirectory(task.directory).locked():
    assert executor.run_one(task, 0).status == 'busy'
  assert [path.name for path in task.directory.iterdir()] == ['.lock']


def test_only_the_task_whose_process_dies_is_reported_as_failed(
  monkeypatch, tmp_path
):
  tasks = _tasks(tmp_path, 'first', 'deadly', 'last')

  def until_one_dies(waiting, jobs):
    # If a process dies, the parallel processes die too.
    waiting = list(waiting)
    while waiting and 'deadly' not in {t.cell.name for t in waiting[:jobs]}:
      yield executor.Outcome(waiting.pop(0), 'done')

  monkeypatch.setattr(executor, '_side_by_side', until_one_dies)
  found = {o.task.cell.name: o.status for o in executor._outcomes(tasks, 2)}
  assert found == {
    'first': 'done', 'deadly': 'its process died', 'last': 'done',
  }  # fmt: skip
  assert [t.failure for t in tasks] == [None, 'its process died', None]


def test_list_prints_every_artifact_and_claim(root, capsys):
  assert _run(root, list=True) is None
  lines = capsys.readouterr().out.splitlines()
  listed = {word for line in lines for word in line.split()[1:2]}
  assert listed >= {*papers.ARTIFACTS, *papers.CLAIMS}


@pytest.mark.process
def test_worker_processes_end_if_the_main_process_is_killed(tmp_path):
  """Remaining processes would keep the directories of runs locked."""
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
    process.kill()
    process.communicate(timeout=20)
    assert psutil.wait_procs(children, timeout=10)[1] == []
  finally:
    for one in (process, *children):
      with contextlib.suppress(psutil.NoSuchProcess):
        one.kill()


@pytest.mark.parametrize(
  ('named', 'flags'),
  [
    # The error suggests a similar name.
    ('posterior_pooling/table2', {'artifact': ['posterior_pooling/tabel2']}),
    ('--scale=huge', {'scale': 'huge'}),
    ('--seeds=0,3', {**_ONE_CLAIM, 'seeds': ['0', '3']}),
    ('--cells=lenet6', {**_ONE_CLAIM, 'cells': 'lenet6'}),
  ],
)
def test_invalid_flags_are_rejected_before_anything_is_written(
  named, flags, tmp_path
):
  with pytest.raises(ValueError, match=named):
    _run(tmp_path / 'new', **flags)
  assert not (tmp_path / 'new').exists()
