"""Benchmark of a federated round against the bare compiled step."""

import statistics as stats
import time

from bfl_tf import federation
from bfl_tf.config.config import Config
from experiments.benchmarks import measuring, random_images


def run(name: str, variant: str, num_workers: int, repeats: int) -> None:
  """Prints one line with the images/s of a round and of the bare step."""
  images = random_images.SHAPES[name]
  batch_size = images.batch_size
  in_round = images.num_clients * images.per_client
  config = Config(
    dataset=random_images.dataset(name),
    model=images.network,
    variant=variant,
    augment=images.augment,
    num_clients=images.num_clients,
    batch_size=batch_size,
    client_optimizer=images.optimizer,
    client_learning_rate=images.learning_rate,
    num_workers=num_workers,
  )
  started = time.perf_counter()
  experiment = federation.Experiment.build(config)
  state = federation.initial_state(experiment).state
  workers = experiment.workers
  bare = [measuring.bare_steps(worker, batch_size) for worker in workers]
  built = time.perf_counter() - started
  share = in_round // batch_size // len(workers)

  def execute():
    federation.federated_round(experiment, state)

  def step():
    measuring.on_all(workers, bare, share)

  first = measuring.seconds(execute)
  before = measuring.process_peak()
  measuring.on_all(workers, bare, 2)
  ratios, rounds, steps = [], [], []
  for _ in range(repeats):
    trained = share * len(workers) * batch_size
    steps.append(trained / measuring.seconds(step))
    seconds = measuring.seconds(execute)
    rounds.append(in_round / seconds)
    ratios.append(rounds[-1] / steps[-1])
  after = measuring.process_peak()
  print(
    f'{name:14} {variant:13} {len(workers)} workers  round '
    f'{stats.median(rounds):7.0f} images/s  bare step '
    f'{stats.median(steps):7.0f} images/s  ratio '
    f'{measuring.spread(ratios)}  built in {built:.1f} s, first '
    f'round {first - in_round / stats.median(rounds):.1f} s longer '
    f'(tracing); peak memory {before:.0f} MiB after it, '
    f'{after:.0f} MiB after {repeats} more',
    flush=True,
  )
