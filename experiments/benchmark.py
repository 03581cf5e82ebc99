"""Speed and memory, measured.

  python -m experiments.benchmark --case=round
  python -m experiments.benchmark --case=pooling

round: images per second of a federated round (broadcast, local training,
weigh, pool, step; neither evaluation nor checkpoints) against the bare compiled
step on a resident batch, on as many workers in the same process, in turn.

pooling: clients pooled one update at a time: peak extra memory in float32
vectors of the model's length, and GB/s of updates beside a plain copy's.
"""

import statistics as stats
import time
import tracemalloc

from absl import flags
import numpy as np
import tensorflow as tf

from bfl_tf import federation, pooling, statistics, training
from bfl_tf import weights as weights_lib
from experiments import flags as config_flags
from experiments import random_images

_CASE = flags.DEFINE_string('case', 'round', 'round or pooling.')
_REPEATS = flags.DEFINE_integer(
  'repeats', 5, 'Measurements; medians count.', lower_bound=1
)
_NUM_WORKERS = flags.DEFINE_integer(
  'num_workers', 0, '0 for all devices.', lower_bound=0
)
_MODELS = flags.DEFINE_list(
  'models', ['resnet20', 'lenet5'], 'Networks of --case=round.'
)
_NUM_CLIENTS = flags.DEFINE_integer(
  'num_clients', 1000, 'Of --case=pooling.', lower_bound=1
)
_NUM_PARAMS = flags.DEFINE_integer(
  'num_params', 1_000_000, 'Likewise.', lower_bound=1
)


def bare_steps(worker: training.Worker, batch_size: int):
  """Compiles a loop over nothing but the training step, on one batch."""
  start = weights_lib.read(worker.training.variables)
  x, y = worker.examples(tf.range(batch_size))

  @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
  def steps(count):
    prior = worker.training.prior(start)
    rate, examples = tf.constant(1e-3), tf.constant(1e3)
    for i in tf.range(count):
      step = training.Step(i, rate, tf.stack([i, i]))
      worker.training.step(x, y, step, (), prior, examples)

  return steps.get_concrete_function()


def benchmark_round(name: str, variant: str) -> None:
  """Prints one line: a round's images/s over the bare step's."""
  _, per_client, batch_size = random_images.SHAPES[name]
  config = federation.Config(
    dataset=f'experiments.random_images:{name}',
    model=name,
    variant=variant,
    batch_size=batch_size,
    num_workers=_NUM_WORKERS.value,
  )
  started = time.perf_counter()
  experiment = federation.Experiment.build(config)
  state, _ = federation.initial_state(experiment)
  workers = experiment.workers
  bare = {id(w): bare_steps(w, batch_size) for w in workers}
  built = time.perf_counter() - started
  share = 10 * (per_client // batch_size) // len(workers)

  def run_bare(worker, count):
    with tf.device(worker.device):
      bare[id(worker)](tf.constant(count))

  first = _seconds(lambda: federation.federated_round(experiment, state))
  list(training.in_parallel(workers, [2] * len(workers), run_bare))
  ratios, rounds, steps = [], [], []
  for _ in range(_REPEATS.value):
    steps.append(
      share * len(workers) * batch_size
      / _seconds(lambda: list(
        training.in_parallel(workers, [share] * len(workers), run_bare)
      ))
    )  # fmt: skip
    seconds = _seconds(lambda: federation.federated_round(experiment, state))
    rounds.append(10 * per_client / seconds)
    ratios.append(rounds[-1] / steps[-1])
  traces = [worker.num_traces for worker in workers]
  print(
    f'{name:9} {variant:13} {len(workers)} workers  round '
    f'{stats.median(rounds):7.0f} images/s  bare step '
    f'{stats.median(steps):7.0f} images/s  ratio {stats.median(ratios):.3f} '
    f'({min(ratios):.3f} to {max(ratios):.3f})  built in {built:.1f} s, first '
    f'round {first - 10 * per_client / stats.median(rounds):.1f} s longer '
    f'(tracing), traces {traces}',
    flush=True,
  )


def benchmark_pooling(rule_name: str) -> None:
  """Prints one line: memory at 10 and at all clients, and speed."""
  size = _NUM_PARAMS.value
  rng = np.random.default_rng(0)
  none = np.zeros([0], np.float32)
  updates = [
    statistics.ClientUpdate(
      k,
      1,
      weights_lib.Weights(
        rng.standard_normal(size, np.float32),
        rng.uniform(0.01, 0.1, size).astype(np.float32),
        none,
        none,
      ),
    )
    for k in range(4)
  ]
  rule = pooling.RULES[rule_name]()
  tight = updates[0].model._replace(scale=np.full(size, 0.2, np.float32))

  def pool(num_clients):
    sums = None
    for k in range(num_clients):
      share = rule.accumulate(updates[k % 4], 1.0 + k, tight)
      sums = share if sums is None else statistics.merge(sums, share)
    return rule.finalize(sums, tight)

  peaks = [_peak(lambda n=n: pool(n)) for n in (10, _NUM_CLIENTS.value)]
  count = 20
  seconds = stats.median(
    _seconds(lambda: pool(count)) for _ in range(_REPEATS.value)
  )
  model = updates[0].model
  copy = stats.median(
    _seconds(lambda: [model.loc.copy(), model.scale.copy()])
    for _ in range(5 * _REPEATS.value)
  )
  vectors = [peak / (4 * size) for peak in peaks]
  print(
    f'{rule_name:11} peak {vectors[0]:.1f} vectors at 10 clients, '
    f'{vectors[1]:.1f} at {_NUM_CLIENTS.value};  '
    f'{count * model.num_bytes / seconds / 1e9:.2f} GB/s, plain copy '
    f'{model.num_bytes / copy / 1e9:.2f} GB/s',
    flush=True,
  )


def main() -> None:
  """Runs the case that the flags name."""
  training.configure(_NUM_WORKERS.value)
  if _CASE.value == 'round':
    for name in _MODELS.value:
      if name not in random_images.SHAPES:
        config_flags.fail(
          f'--models takes {", ".join(random_images.SHAPES)}, not {name}.'
        )
      for variant in ('deterministic', 'flipout'):
        benchmark_round(name, variant)
  elif _CASE.value == 'pooling':
    for rule_name in pooling.RULES:
      benchmark_pooling(rule_name)
  else:
    config_flags.fail(f'--case={_CASE.value}: choose round or pooling.')


def _seconds(function) -> float:
  started = time.perf_counter()
  function()
  return time.perf_counter() - started


def _peak(function) -> int:
  tracemalloc.start()
  function()
  peak = tracemalloc.get_traced_memory()[1]
  tracemalloc.stop()
  return peak


if __name__ == '__main__':
  config_flags.main(main)
