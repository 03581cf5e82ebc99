"""Clients pooled one update at a time."""

import statistics as stats

import numpy as np

from bfl_tf import pooling, statistics
from bfl_tf import weights as weights_lib
from experiments.benchmarks import measuring


def run(rule_name: str, num_clients: int, size: int, repeats: int) -> None:
  """Prints one line: memory at 10 and at all clients, and speed."""
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
  rule = pooling.rule_of(rule_name)
  tight = updates[0].model._replace(scale=np.full(size, 0.2, np.float32))

  def pool(count):
    sums = None
    for k in range(count):
      update = updates[k % 4]._replace(client_id=k)
      if not rule.streams:
        # It is kept, as one that came over a network is.
        update = update._replace(model=_copy(update.model))
      share = rule.accumulate(update, 1.0 + k, tight)
      sums = share if sums is None else statistics.merge(sums, share)
    return rule.finalize(sums, tight)

  peaks = [measuring.peak(lambda n=n: pool(n)) for n in (10, num_clients)]
  count = 20
  seconds = stats.median(
    measuring.seconds(lambda: pool(count)) for _ in range(repeats)
  )
  model = updates[0].model
  copy = stats.median(
    measuring.seconds(lambda: [model.loc.copy(), model.scale.copy()])
    for _ in range(5 * repeats)
  )
  vectors = [peak / (4 * size) for peak in peaks]
  print(
    f'{rule_name:11} peak {vectors[0]:.1f} vectors at 10 clients, '
    f'{vectors[1]:.1f} at {num_clients};  '
    f'{count * model.num_bytes / seconds / 1e9:.2f} GB/s, plain copy '
    f'{model.num_bytes / copy / 1e9:.2f} GB/s',
    flush=True,
  )


def _copy(model):
  return model._replace(loc=model.loc.copy(), scale=model.scale.copy())
