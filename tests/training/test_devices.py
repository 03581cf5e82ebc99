"""Tests of parallel jobs on workers, and of mixed precision."""

import threading
import time

import pytest

from bfl_tf import training


def test_every_job_runs_once_and_a_worker_runs_one_job_at_a_time():
  busy, lock, used = set(), threading.Lock(), set()

  def run(worker, task):
    with lock:
      assert worker not in busy
      busy.add(worker)
      used.add(worker)
    done.wait(0.002)
    with lock:
      busy.remove(worker)
    return task * task

  done = threading.Event()
  results = list(training.in_parallel(['a', 'b'], range(50), run))
  assert sorted(results) == [task * task for task in range(50)]
  assert used == {'a', 'b'}


def test_only_a_few_jobs_are_drawn_in_advance():
  drawn = []

  def jobs():
    for task in range(100):
      drawn.append(task)
      yield task

  results = training.in_parallel(['a', 'b'], jobs(), lambda worker, task: task)
  assert drawn == []
  for count, _ in enumerate(results, start=1):
    # Two jobs per worker run or wait; as many are done but not yet returned.
    assert len(drawn) <= count + 8


def test_an_error_is_raised_and_stops_the_remaining_jobs():
  started = []

  def run(worker, task):
    started.append(task)
    if task == 3:
      raise RuntimeError('task 3')
    return task

  with pytest.raises(RuntimeError, match='task 3'):
    list(training.in_parallel(['a'], range(1000), run))
  assert len(started) < 10


def test_threads_are_reused_and_no_jobs_give_no_results():
  """TensorFlow allocates memory for each thread that calls it."""
  used = {
    thread
    for _ in range(20)
    for thread in training.in_parallel(
      ['a', 'b'], range(4), lambda worker, task: threading.get_ident()
    )
  }
  assert len(used) <= 2
  assert list(training.in_parallel(['a'], [], None)) == []


def test_closing_the_results_waits_for_running_jobs():
  started, ended = [], []

  def run(worker, task):
    started.append(task)
    time.sleep(0.02)
    ended.append(task)

  results = training.in_parallel(['a', 'b'], range(50), run)
  next(results)
  results.close()
  assert sorted(started) == sorted(ended) and len(started) < 10
