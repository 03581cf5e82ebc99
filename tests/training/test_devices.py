"""Jobs on the next free worker: each one once, few at a time."""

import threading
import time

import pytest
import tensorflow as tf

from bfl_tf import training


def test_every_job_once_and_a_worker_to_itself():
  busy, lock, used = set(), threading.Lock(), set()

  def run(worker, job):
    with lock:
      assert worker not in busy
      busy.add(worker)
      used.add(worker)
    done.wait(0.002)
    with lock:
      busy.remove(worker)
    return job * job

  done = threading.Event()
  results = list(training.in_parallel(['a', 'b'], range(50), run))
  assert sorted(results) == [job * job for job in range(50)]
  assert used == {'a', 'b'}


def test_few_jobs_wait_ahead():
  drawn = []

  def jobs():
    for job in range(100):
      drawn.append(job)
      yield job

  results = training.in_parallel(['a', 'b'], jobs(), lambda worker, job: job)
  assert drawn == []
  for count, _ in enumerate(results, start=1):
    # Two a worker run or wait, and as many are done and not yet handed on.
    assert len(drawn) <= count + 8


def test_an_error_comes_through_and_stops_the_rest():
  started = []

  def run(worker, job):
    started.append(job)
    if job == 3:
      raise RuntimeError('job 3')
    return job

  with pytest.raises(RuntimeError, match='job 3'):
    list(training.in_parallel(['a'], range(1000), run))
  assert len(started) < 10


def test_threads_are_kept_and_no_jobs_are_no_results():
  """TensorFlow keeps some of each that ever called it."""
  used = {
    thread
    for _ in range(20)
    for thread in training.in_parallel(
      ['a', 'b'], range(4), lambda worker, job: threading.get_ident()
    )
  }
  assert len(used) <= 2
  assert list(training.in_parallel(['a'], [], None)) == []


def test_who_stops_listening_waits_for_who_works():
  started, ended = [], []

  def run(worker, job):
    started.append(job)
    time.sleep(0.02)
    ended.append(job)

  results = training.in_parallel(['a', 'b'], range(50), run)
  next(results)
  results.close()
  assert sorted(started) == sorted(ended) and len(started) < 10


def test_as_many_strategies_as_workers():
  assert len(training.strategies(1)) == 1
  assert len(training.strategies()) == len(tf.config.list_logical_devices())
  with pytest.raises(ValueError, match='--distribution'):
    training.strategies(2, 'ring')


def test_configuring_late_is_told_and_changes_nothing(caplog):
  before = tf.config.list_logical_devices()
  training.configure(7)
  assert tf.config.list_logical_devices() == before
  assert 'TensorFlow already runs: its 2 device(s)' in caplog.text
