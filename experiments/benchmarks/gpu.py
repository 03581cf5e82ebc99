"""Benchmark of speed, memory and reproducibility on a GPU."""

from collections.abc import Sequence
import pathlib
import subprocess
import sys
import tempfile

from bfl_tf import run_files, training
from bfl_tf.runs import tables
from bfl_tf.startup import tf
from experiments import outcomes
from experiments.benchmarks import random_images, round

# Deterministic kernels are last, since a process cannot switch them off.
_BLOCKS = ('float32', 'mixed_precision', 'deterministic')


def run(names: Sequence[str], num_workers: int, repeats: int) -> None:
  """Prints the GPUs, a line per round, and whether runs are identical."""
  cards = tf.config.list_physical_devices('GPU')
  print(f'TensorFlow {tf.__version__}', *cards or ['no GPU'], flush=True)
  for block in _BLOCKS:
    print(f'{block}:', flush=True)
    if block == 'mixed_precision' and not training.has_mixed_precision():
      print('-')
      continue
    options = {option: option == block for option in _BLOCKS[1:]}
    training.configure(num_workers, **options)
    for name in names:
      for variant in ('deterministic', 'flipout'):
        round.run(name, variant, num_workers, repeats)
  for name in names:
    print(f'{name:14} flipout, {_split(name)}', flush=True)


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
