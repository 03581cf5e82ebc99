"""Measurement of time and memory; bare compiled steps as a baseline."""

from collections.abc import Callable
import concurrent.futures
import multiprocessing
import resource
import statistics as stats
import time

from bfl_tf import training
from bfl_tf.startup import tf

_pools: list[concurrent.futures.ProcessPoolExecutor] = []


def process_pool(
  processes: int, begin: Callable | None = None, arguments: tuple = ()
) -> concurrent.futures.ProcessPoolExecutor:
  """Returns a pool of new processes.

  A forked process would keep the threads and graph rewrites of this one.
  """
  spawn = multiprocessing.get_context('spawn')
  pool = concurrent.futures.ProcessPoolExecutor(
    processes, spawn, begin, arguments
  )
  _pools.append(pool)
  return pool


def end_pools() -> None:
  """Ends all pools of this process."""
  for pool in _pools:
    pool.shutdown()


def seconds(function) -> float:
  """Returns the wall time of a call."""
  started = time.perf_counter()
  function()
  return time.perf_counter() - started


def process_peak() -> float:
  """Returns the peak memory of all GPUs, or of this process, in MiB."""
  cards = tf.config.list_logical_devices('GPU')
  info = tf.config.experimental.get_memory_info
  if cards:
    return sum(info(card.name)['peak'] for card in cards) / 2**20
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def spread(values) -> str:
  """Returns `0.951 (0.947 to 0.958)`: the median and the extremes."""
  return f'{stats.median(values):.3f} ({min(values):.3f} to {max(values):.3f})'


def bare_steps(worker: training.Worker, batch_size: int):
  """Returns a compiled loop of training steps on one batch."""
  prior = training.Prior(tf.constant(0.0), tf.constant(1.0))
  x, y = worker.examples(tf.range(batch_size))

  @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
  def steps(count):
    rate, examples = tf.constant(1e-3), tf.constant(1e3)
    for i in tf.range(count):
      step = training.Step(i, rate, tf.stack([i, i]), examples, examples)
      worker.training.step(x, y, step, (), prior)

  return steps.get_concrete_function()


def on_all(workers: list[training.Worker], functions: list, count: int) -> None:
  """Calls each worker's function with `count`, in parallel."""

  def call(worker, number):
    with tf.device(worker.device):
      functions[workers.index(worker)](tf.constant(number))

  list(training.in_parallel(workers, [count] * len(workers), call))
