"""Devices that train clients, with one `tf.distribute` strategy each.

On a CPU, each core is a logical device with one intra-op thread. Two such
devices are faster than one model on two threads, and results do not depend on
their number. A GPU is one device, or several with equal shares of its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
import concurrent.futures
import functools
import itertools
import os
import pathlib
import queue
import subprocess

from absl import logging

from bfl_tf.startup import tf

DISTRIBUTIONS = ('clients', 'mirrored')

# Instructions for bfloat16 products, as named in /proc/cpuinfo.
_BFLOAT16 = frozenset({'avx512_bf16', 'amx_bf16'})
# Compute capability of the first Nvidia GPUs with bfloat16 products.
_CAPABILITY = (8, 0)
# Fraction of a GPU's memory for its logical devices; the rest is for libraries.
_USED_MEMORY = 0.9
_WORKERS_PER_CORE = 4


def configure(
  num_workers: int = 0,
  deterministic: bool = False,
  clients_per_device: int = 1,
) -> None:
  """Sets threads and logical CPUs; must precede TensorFlow's first op.

  If TensorFlow already runs (a notebook, a test), the existing devices are used
  and a warning is logged.
  """
  # `set_memory_growth` has no effect if there are logical CPUs.
  os.environ.setdefault('TF_FORCE_GPU_ALLOW_GROWTH', 'true')
  cpu = tf.config.list_physical_devices('CPU')[0]
  gpus, count = tf.config.list_physical_devices('GPU'), bounded(num_workers)
  # The arithmetic and memory rewrites turn sums into temporary variables. In
  # nested loops, these cause an AlreadyExistsError in the next step. On a CPU,
  # no rewrite is useful: ResNet-20 is 7 % faster without them.
  off = 'arithmetic_optimization' if gpus else 'disable_meta_optimizer'
  tf.config.optimizer.set_experimental_options({off: not gpus})
  share = 0
  if gpus and clients_per_device > 1:
    share = int(_USED_MEMORY * _gpu_mebibytes() / clients_per_device)
  try:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    # The executors of all workers share this thread pool.
    tf.config.threading.set_inter_op_parallelism_threads(
      max(2, count * (clients_per_device if gpus else 1))
    )
    tf.config.set_logical_device_configuration(
      cpu, [tf.config.LogicalDeviceConfiguration()] * count
    )
    for gpu in gpus if share else ():
      parts = [tf.config.LogicalDeviceConfiguration(share)]
      tf.config.set_logical_device_configuration(
        gpu, parts * clients_per_device
      )
  except RuntimeError:
    logging.log_first_n(
      logging.WARNING,
      'TensorFlow already runs: its %d device(s) and threads stay as they are.',
      1,
      len(tf.config.list_logical_devices('CPU')),
    )
  if deterministic:
    tf.config.experimental.enable_op_determinism()
    # Unseeded random ops, as in a model called outside of a scope, would fail
    # without a global seed.
    tf.random.set_seed(0)


def bounded(num_workers: int) -> int:
  """Returns the number of workers, at most a few per core."""
  cores = len(os.sched_getaffinity(0))
  most = _WORKERS_PER_CORE * cores
  if num_workers > most:
    logging.warning(
      '--num_workers=%d: this machine has %d core(s), so that %d workers are '
      'used.', num_workers, cores, most,
    )  # fmt: skip
  return min(num_workers, most) or cores


def _gpu_mebibytes() -> int:
  """Returns the memory of the smallest GPU."""
  query = '--query-gpu=memory.total', '--format=csv,noheader,nounits'
  printed = subprocess.check_output(['nvidia-smi', *query], text=True)
  return min(map(int, printed.split()))


def has_mixed_precision() -> bool:
  """Returns whether this machine has bfloat16 arithmetic."""
  gpus = tf.config.list_physical_devices('GPU')
  if gpus:
    details = map(tf.config.experimental.get_device_details, gpus)
    return all(
      d.get('compute_capability', (0, 0)) >= _CAPABILITY for d in details
    )
  try:
    text = pathlib.Path('/proc/cpuinfo').read_text('utf-8')
  except OSError:
    return False
  return not _BFLOAT16.isdisjoint(text.split())


def strategies(
  num_workers: int = 0,
  distribution: str = 'clients',
  clients_per_device: int = 1,
) -> list[tf.distribute.Strategy]:
  """Returns one strategy per worker.

  Args:
    distribution: `clients` trains each client on one device, with several
      clients in parallel. `mirrored` trains one client at a time on all
      devices, data-parallel with `MirroredStrategy`, for large models.
  """
  devices = tf.config.list_logical_devices('GPU')
  devices = devices or tf.config.list_logical_devices('CPU')
  count = num_workers * clients_per_device
  names = [device.name for device in devices][: count or None]
  if distribution == 'mirrored':
    return [_mirrored(tuple(names))]
  return [tf.distribute.OneDeviceStrategy(name) for name in names]


@functools.cache
def _mirrored(names):
  # Two strategies over the same devices confuse their collective operations.
  return tf.distribute.MirroredStrategy(names)


def in_parallel(workers: Sequence, jobs: Iterable, run: Callable) -> Iterator:
  """Yields the results of `run(worker, job)` in the order of completion.

  Memory does not grow with the number of jobs: at most one job per worker waits
  in the queue, and results are released after they are yielded.

  Args:
    jobs: Jobs in the order in which they start; may be a generator.
    run: Function that must not call `in_parallel`. It is called in a thread,
      unless the workers train eagerly, for a debugger.
  """
  first = getattr(workers[0], 'config', None)
  if first and first.is_eager:
    yield from (run(workers[0], job) for job in jobs)
    return
  free: queue.Queue = queue.Queue()
  for worker in workers:
    free.put(worker)

  def task(job):
    worker = free.get()
    try:
      return run(worker, job)
    finally:
      free.put(worker)

  jobs, pool = iter(jobs), _threads(len(workers), os.getpid())
  pending = {
    pool.submit(task, job) for job in itertools.islice(jobs, 2 * len(workers))
  }
  try:
    while pending:
      done, pending = concurrent.futures.wait(
        pending, return_when=concurrent.futures.FIRST_COMPLETED
      )
      pending |= {
        pool.submit(task, job) for job in itertools.islice(jobs, len(done))
      }
      # An error ends the loop, so successful results are yielded first.
      ready = sorted(done, key=lambda future: future.exception() is None)
      del done
      while ready:
        yield ready.pop().result()
  finally:
    # Running jobs cannot be canceled and still use their workers.
    concurrent.futures.wait([f for f in pending if not f.cancel()])


@functools.cache
def _threads(count: int, process: int) -> concurrent.futures.ThreadPoolExecutor:
  """Returns reusable threads, as TensorFlow keeps memory for each new one.

  A forked process has new ones, because threads end at a fork.
  """
  del process
  return concurrent.futures.ThreadPoolExecutor(count)
