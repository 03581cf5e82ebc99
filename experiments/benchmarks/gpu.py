"""Benchmark of speed, memory and reproducibility on a GPU, in one table.

Each row has its own process: ours in three precisions, with and without XLA,
and with one and four clients per device; PyTorch as an expert writes it for a
GPU; a PyTorch loop; pfl-research. Peers that are not installed have dashes.
"""

from collections.abc import Iterator, Sequence
import concurrent.futures
import importlib
import importlib.util
import multiprocessing
import pathlib
import statistics as stats
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

from bfl_tf import run_files
from bfl_tf.config.config import Config
from bfl_tf.runs import tables
from bfl_tf.startup import tf
from experiments import outcomes
from experiments.benchmarks import measuring, random_images

# Networks and variants, in the order of their rows.
_WORK = (
  ('pfl_cnn', 'deterministic'),
  ('lenet5', 'deterministic'),
  ('resnet20', 'deterministic'),
  ('resnet20', 'flipout'),
)
# No row starts later, so that a call ends after about ten minutes.
_SECONDS = 480


class _Row(NamedTuple):
  """A row of the table.

  Attributes:
    module: Module of `experiments.benchmarks` with the function `begin`.
    tf32: Whether products may use TensorFloat-32.
  """

  peer: str
  module: str
  needs: str = ''
  tf32: bool = True
  changes: dict[str, Any] = {}


def _ours() -> Iterator[_Row]:
  for precision, jit, clients in (
    ('float32', False, 1),
    ('TF32', False, 1),
    ('TF32', True, 1),
    ('TF32', False, 4),
    ('TF32', True, 4),
    ('bfloat16', False, 1),
    ('bfloat16', True, 1),
    ('bfloat16', True, 4),
  ):
    words = [precision, *['compiled'] * jit]
    changes = {
      'jit_compile': jit,
      'clients_per_device': clients,
      'mixed_precision': precision == 'bfloat16',
    }
    name = f'ours, {", ".join(words)}, {clients} per device'
    yield _Row(name, 'peers', '', precision != 'float32', changes)


_ROWS = (
  *_ours(),
  _Row('PyTorch, expert: bfloat16, compiled', 'torch_gpu', 'torch'),
  _Row('PyTorch, loop', 'torch_peer', 'torch'),
  _Row('pfl-research', 'pfl_peer', 'pfl'),
)


def run(names: Sequence[str], num_workers: int, repeats: int) -> None:
  """Prints the cards, a table, and whether runs are identical."""
  cards = tf.config.list_physical_devices('GPU')
  shown = [tf.config.experimental.get_device_details(c) for c in cards]
  print(
    f'TensorFlow {tf.__version__};',
    *[details.get('device_name', 'GPU') for details in shown] or ['no GPU'],
    flush=True,
  )
  started, rows = time.monotonic(), []
  with tempfile.TemporaryDirectory(prefix='bfl_tf_benchmark_') as folder:
    for network, variant in _WORK:
      if network not in names:
        continue
      config = random_images.config(network, variant, num_workers, folder)
      for row in _ROWS:
        if row.module != 'peers' and variant != 'deterministic':
          continue
        found = {'peer': 'not measured: the time is over'}
        if time.monotonic() < started + _SECONDS:
          found = _measured(row, config, repeats)
        rows.append({'network': network, 'variant': variant} | found)
        speed = found.get('images/s') or '-'
        print(f'{network} {variant}: {found["peer"]}: {speed}', flush=True)
  print(f'\n{tables.table(rows)}\n', flush=True)
  for name in names:
    print(f'{name:14} flipout, {_split(name)}', flush=True)


def _measured(row: _Row, config: Config, repeats: int) -> dict[str, Any]:
  """Returns the columns of a row; dashes if the peer is missing or dies."""
  columns: dict[str, Any] = {'peer': row.peer}
  columns |= dict.fromkeys(('images/s', 'min', 'max', 'MiB', 'first round (s)'))
  if row.needs and not importlib.util.find_spec(row.needs):
    return columns
  its = config.replace(**row.changes)
  spawn = multiprocessing.get_context('spawn')
  with concurrent.futures.ProcessPoolExecutor(1, spawn) as pool:
    try:
      begun, seconds, memory = pool.submit(
        _measure, row.module, its, row.tf32, repeats
      ).result()
    except Exception as error:
      print(f'{row.peer}: {type(error).__name__}: {error}', flush=True)
      return columns
  images = random_images.count(config)
  speeds = [images / each for each in seconds]
  middle = stats.median(speeds), min(speeds), max(speeds)
  columns |= zip(('images/s', 'min', 'max'), map(round, middle))
  return columns | {'MiB': round(memory), 'first round (s)': round(begun, 1)}


def _measure(
  module: str, config: Config, tf32: bool, repeats: int
) -> tuple[float, list[float], float]:
  """Returns seconds of the first round, of the others, and the peak memory.

  It runs in the process of a row.
  """
  if not tf32:
    tf.config.experimental.enable_tensor_float_32_execution(False)
  started = time.perf_counter()
  begun = importlib.import_module(f'experiments.benchmarks.{module}')
  _, execute = begun.begin(config)
  execute()
  first = time.perf_counter() - started
  seconds = [measuring.seconds(execute) for _ in range(repeats)]
  peak = getattr(begun, 'peak_memory', measuring.process_peak)
  return first, seconds, peak()


def _split(name) -> str:
  """Compares two processes with different numbers of clients per device."""
  images = random_images.SHAPES[name]
  with tempfile.TemporaryDirectory(prefix='bfl_tf_benchmark_') as folder:
    found, seconds = [], []
    for count in (1, 4):
      path = pathlib.Path(folder, str(count))
      flags = (
        f'--deterministic --clients_per_device={count} '
        f'--variant=flipout --num_rounds=3 --eval_every=3 --output_dir={path} '
        f'--model={images.network} --dataset={random_images.dataset(name)}'
      )
      command = sys.executable, '-m', 'experiments.run', *flags.split()
      done = subprocess.run(command, stdout=subprocess.DEVNULL)
      if done.returncode:
        return f'a run ended with code {done.returncode}'
      found.append(outcomes.of(path))
      last = tables.read(path / run_files.METRICS)[-1]
      seconds.append(f'{float(last["train_seconds"]):.2f}')
  differ = outcomes.difference(*found) or 'no file'
  return (
    f'1 and 4 clients per device: {differ} differs; '
    f'{" and ".join(seconds)} s per round'
  )
