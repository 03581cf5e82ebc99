"""Benchmark of reproducibility, speed and memory on a GPU."""

from collections.abc import Sequence
import pathlib
import subprocess
import sys
import tempfile

import tensorflow as tf

from bfl_tf import training
from experiments import outcomes
from experiments.benchmarks import random_images, round

# Deterministic kernels are last, since a process cannot switch them off.
_BLOCKS = ('float32', 'mixed_precision', 'deterministic')


def run(names: Sequence[str], num_workers: int, repeats: int) -> None:
  """Prints the GPUs, whether two runs are identical, and a line per round."""
  cards = tf.config.list_physical_devices('GPU')
  print(f'TensorFlow {tf.__version__}', *cards or ['no GPU'], flush=True)
  for name in names:
    print(f'{name:14} two runs: {_difference(name) or "same bits"}', flush=True)
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


def _difference(name) -> str:
  """Repeats a run in two processes, each of which selects its kernels anew."""
  images = random_images.SHAPES[name]
  with tempfile.TemporaryDirectory(prefix='bfl_tf_benchmark_') as folder:
    runs = [pathlib.Path(folder, which) for which in ('first', 'second')]
    for path in runs:
      flags = (
        f'--deterministic --num_rounds=3 --model={images.network} '
        f'--dataset={random_images.dataset(name)} --output_dir={path}'
      )
      command = sys.executable, '-m', 'experiments.run', *flags.split()
      done = subprocess.run(command, stdout=subprocess.DEVNULL)
      if done.returncode:
        return f'not known: a run ended with code {done.returncode}'
    return outcomes.difference(*map(outcomes.of, runs))
