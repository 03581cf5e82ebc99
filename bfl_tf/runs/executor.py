"""Execution of many runs, which skips finished and resumes interrupted ones.

With one job, tasks run in this process with all their workers; otherwise in
parallel in `jobs` processes with one worker each. Several machines may share a
folder, because each running task locks its own directory.
"""

from collections.abc import Callable, Iterator, Sequence
import concurrent.futures
import dataclasses
import functools
import multiprocessing
import os
import pathlib
import threading
import time
from typing import Any

from absl import logging

from bfl_tf import run_files, runs
from bfl_tf.config.config import Config
from bfl_tf.federation import experiment, stopping
from bfl_tf.runs import progress
from bfl_tf.runs.directory import RunDirectory

# Cache of data sets and compiled workers in this process.
built: dict[Any, Any] = {}
_MOST_BUILT = 12


class RunSpec:
  """A planned or finished run."""

  config: Config
  directory: pathlib.Path
  place: str

  @functools.cached_property
  def mismatch(self) -> str | None:
    """Reason why the directory cannot contain this run, or None."""
    try:
      RunDirectory(self.directory).check(self.config)
    except ValueError as error:
      return str(error)
    return None

  @property
  def is_done(self) -> bool:
    """Whether the run is finished with its current settings."""
    if not run_files.is_finished(self.directory):
      return False
    directory = RunDirectory(self.directory)
    try:
      directory.check(self.config)
      return directory.summary(self.config.final_round) is not None
    except ValueError:
      return False

  def complete(self) -> None:
    """Writes what the run needs in addition to its summary."""

  @property
  def failure_path(self) -> pathlib.Path:
    """Path of the file that records a failure, next to the run directory."""
    return self.directory.with_name(f'{self.directory.name}.failure.txt')

  @property
  def failure(self) -> str | None:
    """The mismatch or the last failure of the run, or None."""
    if self.mismatch:
      return self.mismatch
    path = self.failure_path
    return path.read_text('utf-8').strip() if path.exists() else None


@dataclasses.dataclass(frozen=True)
class Outcome:
  """Status of a task: `done`, `busy`, or the reason of its failure."""

  task: RunSpec
  status: str

  @property
  def failed(self) -> bool:
    """Whether the task is neither done nor busy."""
    return self.status not in ('done', 'busy')


def run_all(
  tasks: Sequence[RunSpec],
  jobs: int,
  after: Callable[[Any], None] = lambda task: None,
) -> list[Outcome]:
  """Runs the unfinished tasks; a failure does not stop the others."""
  waiting = [task for task in tasks if not task.is_done]
  # Adjacent tasks of one compile key reuse the compiled worker.
  waiting.sort(
    key=lambda task: (
      task.config.dataset, task.config.model, task.config.variant,
      task.config.client_optimizer, task.config.client_parts,
      task.config.augment, task.config.seed, repr(task.config.settings),
    )
  )  # fmt: skip
  started, outcomes = time.monotonic(), []
  for outcome in _outcomes(waiting, jobs):
    outcomes.append(outcome)
    after(outcome.task)
    done, number = len(outcomes), len(waiting)
    pace = (time.monotonic() - started) / done
    left = progress.time_left([pace], number - done)
    print(
      f'{outcome.task.place}: {outcome.status} ({done} of {number} runs, '
      f'about {left} left)',
      flush=True,
    )
  return outcomes


def run_one(task: RunSpec, num_workers: int | None = None) -> Outcome:
  """Runs a task in this process; its errors become the outcome."""
  if task.mismatch:
    return Outcome(task, task.mismatch)
  _bound_cache()
  task.failure_path.unlink(missing_ok=True)
  config = task.config
  if num_workers is not None:
    config = config.replace(num_workers=num_workers)
  try:
    run = runs.Run(config, task.directory, False, built, draw_plots=False)
    run.execute()
    task.complete()
  except runs.BusyError:
    return Outcome(task, 'busy')
  except Exception as error:
    # The messages of these errors need no traceback.
    ours = not isinstance(error, ValueError | stopping.StoppedError)
    logging.error('%s failed: %s', task.directory, error, exc_info=ours)
    reason = f'{type(error).__name__}: {error}'.splitlines()[0]
    return Outcome(task, _fail(task, reason))
  return Outcome(task, 'done')


def validate(task: RunSpec) -> None:
  """Builds a task's experiment without running it."""
  _bound_cache()
  experiment.build(task.config, built)


def _bound_cache():
  if len(built) > _MOST_BUILT:
    built.clear()


def _fail(task, reason):
  task.failure_path.parent.mkdir(parents=True, exist_ok=True)
  task.failure_path.write_text(reason + '\n', 'utf-8')
  return reason


def _outcomes(tasks, jobs) -> Iterator[Outcome]:
  if jobs == 1:
    yield from (run_one(task) for task in tasks)
    return
  waiting = dict.fromkeys(tasks)
  while waiting:
    before = len(waiting)
    for outcome in _side_by_side(waiting, jobs):
      del waiting[outcome.task]
      yield outcome
    if len(waiting) == before:
      # One of the first tasks kills its process. Each runs alone to find it.
      for task in list(waiting)[:jobs]:
        del waiting[task]
        alone = list(_side_by_side([task], 1))
        yield from alone or [Outcome(task, _fail(task, 'its process died'))]


def _side_by_side(tasks, jobs) -> Iterator[Outcome]:
  """Runs tasks in parallel until all have ended or a process died."""
  # TensorFlow does not work after a fork.
  context = multiprocessing.get_context('spawn')
  with concurrent.futures.ProcessPoolExecutor(
    jobs, context, end_with_parent
  ) as pool:
    futures = {pool.submit(run_one, task, 1): task for task in tasks}
    try:
      for future in concurrent.futures.as_completed(futures):
        # The outcome contains a copy of the task, so the original replaces it.
        yield dataclasses.replace(future.result(), task=futures[future])
    except concurrent.futures.process.BrokenProcessPool:
      logging.warning('A process died; going on with a new pool.')
    except BaseException:
      # Running tasks lose unsaved rounds, and no others start.
      pool.shutdown(wait=False, cancel_futures=True)
      for process in multiprocessing.active_children():
        process.terminate()
      raise


def end_with_parent() -> None:
  """Ends this process when its parent ends, so that no run stays locked."""
  parent: Any = multiprocessing.parent_process()

  def wait():
    parent.join()
    os._exit(1)  # An exception would end this thread alone.

  threading.Thread(target=wait, daemon=True).start()
