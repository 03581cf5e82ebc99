"""Speed and memory, measured.

  python -m experiments.benchmark --case=round
  python -m experiments.benchmark --case=pooling
  python -m experiments.benchmark --case=ensemble

round: images per second of a federated round (broadcast, local training,
weigh, pool, step; neither evaluation nor checkpoints) against the bare compiled
step on a resident batch, on as many workers in the same process, in turn.

pooling: clients pooled one update at a time: peak extra memory in float32
vectors of the model's length, and GB/s of updates beside a plain copy's.

ensemble: predictions of 21 teachers (FedBE's average, ten clients and ten
samples) on 10 000 images against the bare forward passes; the distillation step
against the bare training step.
"""

from absl import flags

from bfl_tf import pooling as pooling_lib
from bfl_tf import training
from experiments import flags as config_flags
from experiments import random_images
from experiments.benchmarks import ensemble, pooling
from experiments.benchmarks import round as round_lib

_CASE = flags.DEFINE_string('case', 'round', 'round, pooling or ensemble.')
_REPEATS = flags.DEFINE_integer(
  'repeats', 5, 'Measurements; medians count.', lower_bound=1
)
_NUM_WORKERS = flags.DEFINE_integer(
  'num_workers', 0, '0 for all devices.', lower_bound=0
)
_MODELS = flags.DEFINE_list(
  'models', ['resnet20', 'lenet5'], 'Networks of --case=round and ensemble.'
)
_NUM_CLIENTS = flags.DEFINE_integer(
  'num_clients', 1000, 'Of --case=pooling.', lower_bound=1
)
_NUM_PARAMS = flags.DEFINE_integer(
  'num_params', 1_000_000, 'Likewise.', lower_bound=1
)


def main() -> None:
  """Runs the case that the flags name."""
  for name in _MODELS.value:
    if name not in random_images.SHAPES:
      config_flags.fail(
        f'--models takes {", ".join(random_images.SHAPES)}, not {name}.'
      )
  training.configure(_NUM_WORKERS.value)
  workers, repeats = _NUM_WORKERS.value, _REPEATS.value
  if _CASE.value == 'round':
    for name in _MODELS.value:
      for variant in ('deterministic', 'flipout'):
        round_lib.run(name, variant, workers, repeats)
  elif _CASE.value == 'pooling':
    for rule_name in pooling_lib.RULES:
      pooling.run(rule_name, _NUM_CLIENTS.value, _NUM_PARAMS.value, repeats)
  elif _CASE.value == 'ensemble':
    for name in _MODELS.value:
      ensemble.run(name, workers, repeats)
  else:
    config_flags.fail(
      f'--case={_CASE.value}: choose round, pooling or ensemble.'
    )


if __name__ == '__main__':
  config_flags.main(main)
