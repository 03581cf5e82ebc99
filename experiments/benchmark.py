"""Speed and memory, measured.

  python -m experiments.benchmark --case=round
  python -m experiments.benchmark --case=pooling
  python -m experiments.benchmark --case=ensemble
  python -m experiments.benchmark --case=flower
  python -m experiments.benchmark --case=flower_memory

round: images per second of a federated round (broadcast, local training,
weigh, pool, step; neither evaluation nor checkpoints) against the bare compiled
step on a resident batch, on as many workers in the same process, in turn.

pooling: clients pooled one update at a time: peak extra memory in float32
vectors of the model's length, and GB/s of updates beside a plain copy's.

ensemble: predictions of 21 teachers (FedBE's average, ten clients and ten
samples) on 10 000 images against the bare forward passes; the distillation step
against the bare training step.

flower: seconds a round, without the first, of 10 clients and 20 batches: a
Flower app as most are written, ours on Flower's simulation, ours on the local
engine. All three have --num_workers processes or devices.

flower_memory: peak memory of the server on Flower's simulation with 10 clients
and with 200 of --num_params weights.
"""

from collections.abc import Callable

from absl import flags

from bfl_tf import pooling as pooling_lib
from bfl_tf import training
from experiments import flags as config_flags
from experiments.benchmarks import ensemble, pooling, random_images
from experiments.benchmarks import round as round_lib

_CASE = flags.DEFINE_string(
  'case', 'round', 'round, pooling, ensemble, flower or flower_memory.'
)
_REPEATS = flags.DEFINE_integer(
  'repeats', 5, 'Measurements; medians count.', lower_bound=1
)
_NUM_WORKERS = flags.DEFINE_integer(
  'num_workers', 0, '0 for all devices.', lower_bound=0
)
_MODELS = flags.DEFINE_list(
  'models',
  None,
  'Networks of --case=round and ensemble, resnet20,lenet5 if none is named; of '
  'flower, resnet20.',
)
_NUM_CLIENTS = flags.DEFINE_integer(
  'num_clients',
  None,
  'Of --case=pooling, 1000 if not said; of flower, 10; of flower_memory, 200.',
  lower_bound=1,
)
_NUM_PARAMS = flags.DEFINE_integer(
  'num_params',
  None,
  'Of --case=pooling, 1000000 if not said; of flower_memory, 300000.',
  lower_bound=1,
)
_NUM_BATCHES = flags.DEFINE_integer(
  'num_batches', 20, 'Of a client a round of --case=flower.', lower_bound=1
)


def main() -> None:
  """Runs the case that the flags name."""
  if _CASE.value not in _CASES:
    *names, last = _CASES
    config_flags.fail(
      f'--case={_CASE.value}: choose {", ".join(names)} or {last}.'
    )
  for name in _MODELS.value or ():
    if name not in random_images.SHAPES:
      config_flags.fail(
        f'--models takes {", ".join(random_images.SHAPES)}, not {name}.'
      )
  training.configure(_NUM_WORKERS.value)
  _CASES[_CASE.value](_NUM_WORKERS.value, _REPEATS.value)


def _round(workers, repeats):
  for name in _MODELS.value or ('resnet20', 'lenet5'):
    for variant in ('deterministic', 'flipout'):
      round_lib.run(name, variant, workers, repeats)


def _pooling(workers, repeats):
  del workers
  clients = _NUM_CLIENTS.value or 1000
  for rule_name in pooling_lib.RULES:
    pooling.run(rule_name, clients, _NUM_PARAMS.value or 1_000_000, repeats)


def _ensemble(workers, repeats):
  for name in _MODELS.value or ('resnet20', 'lenet5'):
    ensemble.run(name, workers, repeats)


def _flower(workers, repeats):
  flower = _flower_module()
  clients = _NUM_CLIENTS.value or 10
  for name in _MODELS.value or ('resnet20',):
    flower.run(name, workers, repeats, clients, _NUM_BATCHES.value)


def _flower_memory(workers, repeats):
  del repeats
  clients, params = _NUM_CLIENTS.value or 200, _NUM_PARAMS.value or 300_000
  _flower_module().memory(workers, clients, params)


def _flower_module():
  config_flags.flower(f'--case={_CASE.value}')
  from experiments.benchmarks import flower

  return flower


_CASES: dict[str, Callable[[int, int], None]] = {
  'round': _round,
  'pooling': _pooling,
  'ensemble': _ensemble,
  'flower': _flower,
  'flower_memory': _flower_memory,
}

if __name__ == '__main__':
  config_flags.main(main)
