"""Benchmarks of speed and memory.

  python -m experiments.benchmark --case=round

round: images per second of a federated round, without evaluation and
checkpoints. The round is compared with the bare compiled training step on a
resident batch. Both use the same workers and are measured in turn.

peers: images per second of a round: ours, ours in mixed precision, PyTorch as
an expert writes it, pfl-research, a PyTorch loop, Keras' `fit` per client, and
typical Flower apps. Each has --num_workers processes, devices or threads; they
are measured in turn. The table is written to peers.csv in --output_dir.

gpu: images per second of a round on a GPU, in one table: ours in float32 and
TensorFloat-32, compiled with XLA and not, with one and four clients per device;
PyTorch as an expert writes it for a GPU; a PyTorch loop; pfl-research. Also
compares deterministic runs with one and four clients per device: seconds per
round, and whether their results are bit-for-bit identical.
"""

from collections.abc import Callable
import pathlib

from absl import flags

from bfl_tf import training
from bfl_tf.declare import registry
from bfl_tf.runs import tables
from experiments import command_line
from experiments.benchmarks import gpu, peers, random_images, round

_CASE = flags.DEFINE_string(
  'case',
  'round',
  'Benchmark to run. One of: round, peers, gpu.',
)
_REPEATS = flags.DEFINE_integer(
  'repeats', 5, 'Number of measurements; the median is reported.', lower_bound=1
)
_NUM_WORKERS = flags.DEFINE_integer(
  'num_workers',
  0,
  'Number of parallel workers; 0: one per core.',
  lower_bound=0,
)
_MODELS = flags.DEFINE_list(
  'models',
  None,
  'Networks to measure. Some of: '
  f'{", ".join(random_images.SHAPES)}. Empty: resnet20,lenet5, and for '
  '--case=peers also lenet5_cifar10, which has random crops and flips.',
)
_VARIANT = flags.DEFINE_enum(
  'variant',
  None,
  ['deterministic', 'flipout'],
  'Variant of the networks for --case=round and --case=peers; empty: both.',
)
_OUTPUT_DIR = flags.DEFINE_string(
  'output_dir',
  None,
  'Directory of the table of --case=peers.',
)
_NUM_CLIENTS = flags.DEFINE_integer(
  'num_clients',
  None,
  'Number of clients for --case=peers; empty: 10, or 50 for pfl_cnn.',
  lower_bound=1,
)


def main() -> None:
  """Runs the case of the flag `--case`."""
  registry.check_choice('case', _CASE.value, _CASES)
  for name in _MODELS.value or ():
    registry.check_choice('models', name, random_images.SHAPES)
  if _OUTPUT_DIR.value:
    pathlib.Path(_OUTPUT_DIR.value).mkdir(parents=True, exist_ok=True)
  training.configure(_NUM_WORKERS.value)
  _CASES[_CASE.value](_NUM_WORKERS.value, _REPEATS.value)


def _round(workers, repeats):
  for name in _MODELS.value or ('resnet20', 'lenet5'):
    for variant in _variants():
      round.run(name, variant, workers, repeats)


def _variants():
  return [_VARIANT.value] if _VARIANT.value else ['deterministic', 'flipout']


def _peers(workers, repeats):
  clients, rows = _NUM_CLIENTS.value or 0, []
  names = ('resnet20', 'lenet5', 'lenet5_cifar10', 'pfl_cnn')
  for name in _MODELS.value or names:
    for variant in _variants():
      rows += peers.run(name, variant, workers, repeats, clients)
  if _OUTPUT_DIR.value:
    tables.write_csv(pathlib.Path(_OUTPUT_DIR.value) / 'peers.csv', rows)


def _gpu(workers, repeats):
  names = _MODELS.value or ('pfl_cnn', 'lenet5', 'resnet20')
  gpu.run(names, workers, repeats)


_CASES: dict[str, Callable[[int, int], None]] = {
  'round': _round,
  'peers': _peers,
  'gpu': _gpu,
}

if __name__ == '__main__':
  command_line.main(main)
