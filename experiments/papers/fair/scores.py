"""Scores and costs of a run, for `--score_runs` of `bfl-tf sweep`."""

from collections.abc import Mapping, Sequence
import pathlib
from typing import Any

import numpy as np

from bfl_tf import data, metrics, run_files
from bfl_tf.analysis import (
  model,
  prediction_sets,
  site_statistics,
  uncertainty,
)
from bfl_tf.data import shares
from bfl_tf.federation import run_data
from bfl_tf.runs import checkpoints, executor, run_config, tables
from experiments.papers.fair import reference
from experiments.reference_posteriors.distance import total_variation

# Examples of each data set for out-of-distribution detection.
_EXAMPLES = 2000
_MEASURES = {
  'normalized_entropy': 'entropy',
  'epistemic_uncertainty': 'epistemic',
}
# Data sets for out-of-distribution detection, by their distance.
_IMAGES = {'near': 'mnist', 'far': 'cifar10'}
_FEATURES = {
  'near': 'runs/features/cifar100.npz',
  'far': 'runs/features/mnist.npz',
}


def of_run(run: pathlib.Path) -> dict[str, float]:
  """Returns scores on test examples, bytes and memory of a finished run."""
  config, trained = run_config.read_config(run), model.load(run)
  dataset = run_data.load(config, executor.built)
  kept = np.load(run / run_files.PREDICTIONS)
  prediction = model.Prediction(*(kept[k] for k in model.Prediction._fields))
  found = {
    **_sets(dataset, prediction.probs),
    **detection(dataset, trained, others(config.dataset, dataset)),
    'aurc': next(uncertainty.selection(prediction, dataset.test.y))['aurc'],
    **_reference(config, dataset, prediction.probs),
    'worst_client': _worst_client(config, dataset, prediction.probs),
    'train_seconds': run_files.read_summary(run)['train_seconds'],
    **_costs(run),
  }
  # A few test examples give no threshold of prediction sets.
  return {name: each for name, each in found.items() if each is not None}


def others(
  name: str, dataset: data.Dataset
) -> list[uncertainty.OutOfDistribution]:
  """Returns data sets for out-of-distribution detection, from a cache."""
  key = 'fair_others', name
  if key not in executor.built:
    sets = _IMAGES if name == 'fashion_mnist' else _FEATURES
    executor.built[key] = [
      uncertainty.other(distance, each, dataset, _EXAMPLES)
      for distance, each in sets.items()
    ]
  return executor.built[key]


def _sets(dataset, probs) -> dict[str, float]:
  """Returns scores of prediction sets, calibrated on half of the examples."""
  test = dataset.test
  held, rest = shares.hold_out('test', test, 'calibrate_on_test', 0.5)
  counts = metrics.score_counts(probs[held], test.y[held], 'lac')
  found = {'': counts[np.newaxis]}
  sets = prediction_sets.PredictionSets.of(found, 1, 'lac', 'all')
  of_rest = site_statistics.SiteStatistics.of(probs[rest], test.y[rest], sets)
  # Other scores of the run are those of all test examples.
  ours = ('coverage', 'size', 'single')
  row = of_rest.row(sets)
  return {k: v for k, v in row.items() if k.partition('_')[0] in ours}


def detection(
  dataset: data.Dataset,
  trained: model.Trained,
  others: Sequence[uncertainty.OutOfDistribution],
) -> dict[str, float]:
  """Returns the AUROC of detecting examples of other data sets."""
  rows = uncertainty.subset(len(dataset.test.y), _EXAMPLES)
  if trained.needs_site and not isinstance(trained, model.Ensemble):
    # `replace` permits a global model with untrained layers.
    trained = trained.replace(trained.weights)
  inside, found = trained.predict(dataset.test.x[rows]), {}
  for other in others:
    outside = trained.predict(other.x)
    for row in uncertainty.detection(inside, outside, other):
      if row['measure'] in _MEASURES:
        found[f'{other.distance}_{_MEASURES[row["measure"]]}'] = row['auroc']
  return found


def _reference(config, dataset, probs) -> dict[str, float]:
  """Returns the distance to the reference posterior's predictions, if any."""
  if config.model != 'logistic' or config.dataset == 'fashion_mnist':
    return {}
  folder = pathlib.Path(config.dataset).parent
  expected = reference.predictions(config, dataset, folder)['posterior']
  return {'reference_distance': total_variation(probs, expected)}


def _worst_client(config, dataset, probs) -> float:
  """Returns the lowest accuracy of the global model on a client's examples."""
  right = metrics.is_correct(probs, dataset.test.y)
  partition, _ = run_data.partition_dataset(config, dataset)
  rows = run_data.personal_rows(
    dataset, 'test', partition, range(len(partition)), config.seed_of_data
  )
  return min(float(right[each].mean()) for each in rows.values())


def _costs(path) -> dict[str, float]:
  """Returns bytes per round and in all, and bytes kept between rounds."""
  rows = tables.read(path / run_files.METRICS)[1:]
  sent = {
    name: [row[name] for row in rows] for name in ('bytes_up', 'bytes_down')
  }
  found = {name: float(np.mean(each)) for name, each in sent.items()}
  found['bytes'] = sum(map(sum, sent.values()))
  if (path / run_files.ENSEMBLE).exists():
    return found
  state = checkpoints.restore(path)
  memory = next(iter(state.memories.values()), {})
  return {
    **found,
    'bytes_of_client': _size(memory),
    'bytes_of_server': state.model.num_bytes + _size(state.slots),
  }


def _size(tree: Mapping[str, Any]) -> int:
  return sum(
    _size(value) if isinstance(value, Mapping) else np.asarray(value).nbytes
    for value in tree.values()
  )
