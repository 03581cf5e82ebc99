"""The devices that train clients, one `tf.distribute` strategy each.

On a CPU a device is a logical CPU per core with one intra-op thread: two such
workers outrun one model on two threads, and a client's bits do not depend on
how many work beside it. GPUs are taken as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
import concurrent.futures
import functools
import itertools
import os
import pathlib
import queue

from absl import logging

from bfl_tf.startup import tf

DISTRIBUTIONS = ('clients', 'mirrored')


# The instructions that multiply bfloat16, as /proc/cpuinfo calls them.
_BFLOAT16 = frozenset({'avx512_bf16', 'amx_bf16'})
# TensorFlow's graph rewrites besides that to bfloat16, of those that are on.
_REWRITES = (
  'arithmetic_optimization',
  'constant_folding',
  'dependency_optimization',
  'function_optimization',
  'implementation_selector',
  'layout_optimizer',
  'loop_optimization',
  'remapping',
  'shape_optimization',
)
# Operations that stay float32 behind a product, where the rewrite would round
# them too: sums of gradients, and probabilities.
_FLOAT32 = (
  'AddN',
  'Log',
  'Log1p',
  'LogSoftmax',
  'Mean',
  'Sigmoid',
  'Softmax',
  'Softplus',
  'Sum',
)
_LISTS = 'TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE'
_TO_BFLOAT16 = 'auto_mixed_precision_onednn_bfloat16'


def configure(
  num_workers: int = 0,
  deterministic: bool = False,
  mixed_precision: bool = False,
) -> None:
  """Sets threads and logical CPUs; to be called before TensorFlow's first op.

  Where TensorFlow already runs (a notebook, a test) the devices that exist are
  used and one log line says so.

  Args:
    num_workers: logical CPUs to make; 0 for one a core.
    deterministic: ask for deterministic kernels, which a GPU needs for equal
      bits; CPUs with one thread have them anyway.
    mixed_precision: convolutions and matrix products in bfloat16, and what lies
      between two of them; variables, divergences, losses, the sums of gradients
      and probabilities stay float32. It holds for what is compiled from now on:
      one precision at a time in a process.

  Raises:
    ValueError: `has_mixed_precision` is false.
  """
  if mixed_precision and not has_mixed_precision():
    raise ValueError(
      '--mixed_precision needs a processor with bfloat16 arithmetic '
      f'({" or ".join(sorted(_BFLOAT16))}) and no GPU: remove the flag.'
    )
  # TensorFlow reads these whenever it rewrites a graph.
  os.environ[f'{_LISTS}_INFERLIST_REMOVE'] = ','.join(_FLOAT32)
  os.environ[f'{_LISTS}_DENYLIST_ADD'] = ','.join(_FLOAT32)
  # These can be set at any time, unlike what follows.
  tf.config.optimizer.set_experimental_options(_graph_options(mixed_precision))
  cpu = tf.config.list_physical_devices('CPU')[0]
  count = num_workers or len(os.sched_getaffinity(0))
  try:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    # Every worker's executor runs in this one pool.
    tf.config.threading.set_inter_op_parallelism_threads(max(2, count))
    tf.config.set_logical_device_configuration(
      cpu, [tf.config.LogicalDeviceConfiguration()] * count
    )
    for gpu in tf.config.list_physical_devices('GPU'):
      tf.config.experimental.set_memory_growth(gpu, True)
  except RuntimeError:
    logging.warning(
      'TensorFlow already runs: its %d device(s) and threads stay as they are.',
      len(tf.config.list_logical_devices('CPU')),
    )
  if deterministic:
    tf.config.experimental.enable_op_determinism()
    # A model that is built or called by hand draws outside of our seeds, which
    # TensorFlow then refuses without one of its own.
    tf.random.set_seed(0)


def has_mixed_precision() -> bool:
  """Whether this machine supports `mixed_precision`.

  On a GPU it would be float16, whose small gradients vanish without a scaled
  loss; nobody measured it.
  """
  if tf.config.list_physical_devices('GPU'):
    return False
  try:
    said = pathlib.Path('/proc/cpuinfo').read_text()
  except OSError:
    return False
  return not _BFLOAT16.isdisjoint(said.split())


def in_float32(tensors: list[tf.Tensor]) -> list[tf.Tensor]:
  """Returns tensors from which the rewrite to bfloat16 does not go on."""
  if not tf.config.optimizer.get_experimental_options().get(_TO_BFLOAT16):
    return tensors
  # An operation that it does not know.
  return [tf.raw_ops.Snapshot(input=tensor) for tensor in tensors]


def _graph_options(mixed_precision: bool) -> dict[str, bool]:
  """Which of TensorFlow's graph rewrites to leave out.

  The arithmetic rewrite makes sums of three and more, which the memory rewrite
  turns into temporary variables; inside a loop inside a loop these outlive
  their step and the next one stops with AlreadyExistsError. On a CPU the
  rewrites bring nothing (ResNet-20 is 7 % faster without any of them), except
  for the one to bfloat16.
  """
  if tf.config.list_physical_devices('GPU'):
    return {'arithmetic_optimization': False}
  return {
    'disable_meta_optimizer': not mixed_precision,
    _TO_BFLOAT16: mixed_precision,
    **dict.fromkeys(_REWRITES, False),
  }


def strategies(
  num_workers: int = 0, distribution: str = 'clients'
) -> list[tf.distribute.Strategy]:
  """Returns one strategy per worker.

  Args:
    num_workers: Maximum number of devices; 0 for all.
    distribution: `clients`: a client is trained on one device, several clients
      side by side. `mirrored`: one client at a time, data-parallel over all
      devices with `MirroredStrategy`, for a model that fills a card.
  """
  found = tf.config.list_logical_devices('GPU')
  found = found or tf.config.list_logical_devices('CPU')
  names = [device.name for device in found][: num_workers or None]
  if distribution == 'mirrored':
    return [_mirrored(tuple(names))]
  return [tf.distribute.OneDeviceStrategy(name) for name in names]


@functools.cache
def _mirrored(names):
  # Two over the same devices mix their collective operations up.
  return tf.distribute.MirroredStrategy(names)


def in_parallel(workers: Sequence, jobs: Iterable, run: Callable) -> Iterator:
  """Yields `run(worker, job)` as they finish, each on the next free worker.

  At most one job a worker waits ahead, and a result is let go of once it has
  been yielded: memory does not grow with the jobs.

  Args:
    workers: Workers, of which each job uses one exclusively.
    jobs: Jobs in the order in which they start; may be a generator.
    run: called in a thread, which must not wait for `in_parallel` itself;
      TensorFlow lets go of the interpreter's lock.
  """
  free: queue.Queue = queue.Queue()
  for worker in workers:
    free.put(worker)

  def task(job):
    worker = free.get()
    try:
      return run(worker, job)
    finally:
      free.put(worker)

  jobs, pool = iter(jobs), _threads(len(workers))
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
      # An error ends it all: it comes after what is finished.
      ready = sorted(done, key=lambda future: future.exception() is None)
      del done
      while ready:
        yield ready.pop().result()
  finally:
    # Who is at work has a worker until the end.
    concurrent.futures.wait([f for f in pending if not f.cancel()])


@functools.cache
def _threads(count: int) -> concurrent.futures.ThreadPoolExecutor:
  """Returns threads that are reused: TensorFlow keeps memory for each new
  thread.
  """
  return concurrent.futures.ThreadPoolExecutor(count)
