"""Growth of time and memory with the size of a run, with fitted exponents.

clients   number of clients of a round, with one example each
weights   number of weights of three posteriors, which `nwa` pools
samples   number of Monte Carlo samples of a prediction of 512 images
members   number of models drawn from a Gaussian posterior
teachers  number of members of an ensemble that predicts the images

Clients train a logistic regression; samples, members and teachers are of
LeNet-5. Memory is the peak memory of Python and NumPy.
"""

import collections
from collections.abc import Callable, Sequence
import statistics as stats
from typing import Any

import numpy as np

from bfl_tf import data, federation, statistics, training, weights
from bfl_tf.config.config import Config
from bfl_tf.federation import ensembles
from bfl_tf.runs import tables
from bfl_tf.server import pooling, posteriors
from experiments.benchmarks import measuring, random_images

_SEED = np.zeros(2, np.int32)
_COLUMNS = ('seconds', 'MiB')


def run(
  num_workers: int, repeats: int, num_clients: int, num_params: int
) -> list[dict[str, Any]]:
  """Prints and returns one row per quantity and size.

  The number of clients and of weights grows up to the two arguments.
  """
  rows = []
  things = {
    'clients': (10, num_clients, _rounds(num_workers, num_clients)),
    'weights': (10_000, num_params, pooled),
    **_predictions(num_workers),
  }
  for name, (least, most, begin) in things.items():
    sizes = [round(least * 10 ** (i / 2)) for i in range(9)]
    turns = {size: begin(size) for size in sizes if size <= most}
    # The first repetition traces and is not counted. Sizes are measured in
    # turn, so that a slow phase of the machine affects all of them.
    times: dict[int, list[float]] = {size: [] for size in turns}
    for again in range(1 + repeats):
      for size, execute in turns.items():
        seconds = measuring.seconds(execute)
        times[size] += [seconds] * (again > 0)
    found = [
      {
        'what': name,
        'size': size,
        'seconds': stats.median(times[size]),
        'MiB': measuring.peak(execute) / 2**20,
      }
      for size, execute in turns.items()
    ]
    fitted = (f'{column}^{_fitted(found, column)}' for column in _COLUMNS)
    print(f'{tables.table(found)}\n{", ".join(fitted)}\n', flush=True)
    rows += found
  return rows


def exponent(
  sizes: Sequence[float], values: Sequence[float]
) -> tuple[float, float]:
  """Returns the slope in log-log and its standard error.

  They are fitted to the larger half of the sizes, at least three, where fixed
  costs matter little. Both are NaN for fewer than three sizes.
  """
  count = max(3, (len(sizes) + 1) // 2)
  if len(sizes) < count:
    return np.nan, np.nan
  x, y = np.log(sizes[-count:]), np.log(values[-count:])
  (slope, _), covariance = np.polyfit(x, y, 1, cov=True)
  return float(slope), float(covariance[0, 0] ** 0.5)


def pooled(size: int) -> Callable:
  """Returns a function that pools clients with `size` weights one by one."""
  rng, none = np.random.default_rng(0), np.zeros(0, np.float32)
  loc, scale = (rng.random(size, np.float32) for _ in range(2))
  model = weights.Weights(loc, 0.1 * scale + 0.01, none, none)
  tight = model._replace(scale=np.full(size, 0.2, np.float32))
  rule = pooling.rule_of('nwa')

  def weighed():
    for k in range(3):
      # A rule may keep the update, so each update has its own arrays.
      own = model._replace(loc=loc.copy(), scale=model.scale.copy())
      yield statistics.ClientUpdate(k, 1, own), 1.0 + k

  return lambda: statistics.stepped(rule, weighed(), tight)


def _rounds(num_workers, num_clients) -> Callable:
  x = np.random.default_rng(0).standard_normal((num_clients, 4), np.float32)
  y = np.arange(num_clients) % 2
  dataset = data.from_arrays('one each', x, y, x, y)
  built: dict[Any, Any] = {}

  def begin(count):
    config = Config(
      model='logistic', batch_size=1, num_workers=num_workers,
      num_clients=num_clients, clients_per_round=count,
    )  # fmt: skip
    experiment = federation.Experiment.build(config, built, dataset)
    state = federation.initial_state(experiment).state
    return lambda: federation.federated_round(experiment, state)

  return begin


def _predictions(num_workers) -> dict[str, tuple[int, int, Callable]]:
  flipout = _lenet5(num_workers, variant='flipout')
  points = _lenet5(num_workers, variant='deterministic')
  x, y = (array[:512] for array in flipout.dataset.train[:2])
  model, like = (e.initial_weights() for e in (flipout, points))
  posterior = posteriors.normal(like.values, np.full(like.values.size, 0.01))
  is_variance = points.plan.layout.is_variance()

  def samples(count):
    return lambda: training.predict(
      flipout.workers, model, x, seed=_SEED, num_samples=count
    )

  def drawn(count):
    return posteriors.Draws(posterior, like, is_variance, _SEED, count, 0.1)

  def members(count):
    return lambda: collections.deque(drawn(count), maxlen=0)

  def teachers(count):
    return lambda: ensembles.predict(
      points.workers, {'S': drawn(count)}, x, y, _SEED, 1
    )

  return {
    each.__name__: (1, 320, each) for each in (samples, members, teachers)
  }


def _lenet5(num_workers, **values) -> federation.Experiment:
  dataset = random_images.dataset('lenet5')
  config = Config(
    dataset=dataset, model='lenet5', num_workers=num_workers, **values
  )
  return federation.Experiment.build(config)


def _fitted(rows, column) -> str:
  sizes, values = ([row[name] for row in rows] for name in ('size', column))
  return '{:.2f} ± {:.2f}'.format(*exponent(sizes, values))
