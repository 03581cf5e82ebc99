"""Scores and costs of a run of the comparison of all methods."""

from collections.abc import Iterable, Mapping
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
from bfl_tf.config import config as config_lib
from bfl_tf.data import shares
from bfl_tf.federation import run_data
from bfl_tf.runs import checkpoints, tables

# Examples of each data set for out-of-distribution detection.
_EXAMPLES = 2000
_MEASURES = {
  'normalized_entropy': 'entropy',
  'epistemic_uncertainty': 'epistemic',
}
PERSONAL = ('personal_accuracy', 'personal_nll', 'personal_lowest_accuracy')
NAMES = (
  'aurc', 'size_0.9', 'coverage_0.9', 'near_entropy', 'near_epistemic',
  'far_entropy', 'far_epistemic', 'worst_client', *PERSONAL, 'bytes_up',
  'bytes_down', 'bytes_of_client', 'bytes_of_server',
)  # fmt: skip


def load_others(
  dataset: data.Dataset, names: Mapping[str, str]
) -> list[uncertainty.OutOfDistribution]:
  """Loads data sets for out-of-distribution detection, by their distance."""
  return [
    uncertainty.other(distance, name, dataset, _EXAMPLES)
    for distance, name in names.items()
  ]


def of_run(
  path: pathlib.Path,
  config: config_lib.Config,
  dataset: data.Dataset,
  others: Iterable[uncertainty.OutOfDistribution],
) -> dict[str, str]:
  """Returns scores on test examples, bytes and memory of a finished run.

  Args:
    path: Directory of the run.
    config: Config of the run.
    dataset: Data set of the run.
    others: Data sets for out-of-distribution detection.
  """
  kept = np.load(path / run_files.PREDICTIONS)
  prediction = model.Prediction(*(kept[k] for k in model.Prediction._fields))
  found = {
    **_sets(dataset, prediction.probs),
    **_detection(dataset, model.load(path), others),
    'aurc': next(uncertainty.selection(prediction, dataset.test.y))['aurc'],
    'worst_client': _worst_client(config, dataset, prediction.probs),
    **_costs(path),
  }
  return {name: f'{found[name]:.6g}' for name in NAMES if name in found}


def _sets(dataset, probs) -> dict[str, float]:
  """Returns scores of prediction sets, calibrated on half of the examples."""
  test = dataset.test
  held, rest = shares.hold_out('test', test, 'calibrate_on_test', 0.5)
  counts = metrics.score_counts(probs[held], test.y[held], 'lac')
  found = {'': counts[np.newaxis]}
  sets = prediction_sets.PredictionSets.of(found, 1, 'lac', 'all')
  of_rest = site_statistics.SiteStatistics.of(probs[rest], test.y[rest], sets)
  return of_rest.row(sets)


def _detection(dataset, trained, others) -> dict[str, float]:
  """Returns the AUROC of detecting examples of other data sets."""
  rows = uncertainty.subset(len(dataset.test.y), _EXAMPLES)
  # `replace` also permits a global model with untrained layers.
  trained = trained.replace(trained.weights)
  inside, found = trained.predict(dataset.test.x[rows]), {}
  for other in others:
    outside = trained.predict(other.x)
    for row in uncertainty.detection(inside, outside, other):
      if row['measure'] in _MEASURES:
        found[f'{other.distance}_{_MEASURES[row["measure"]]}'] = row['auroc']
  return found


def _worst_client(config, dataset, probs) -> float:
  """Returns the lowest accuracy of the global model on a client's examples."""
  right = metrics.is_correct(probs, dataset.test.y)
  partition, _ = run_data.partition_dataset(config, dataset)
  rows = run_data.personal_rows(
    dataset, 'test', partition, range(len(partition)), config.seed_of_data
  )
  return min(float(right[each].mean()) for each in rows.values())


def _costs(path) -> dict[str, float]:
  """Returns bytes per round, and bytes kept between rounds."""
  rows = tables.read(path / 'metrics.csv')[1:]
  state = checkpoints.restore(path)
  memory = next(iter(state.memories.values()), {})
  return {
    **{
      name: float(np.mean([row[name] for row in rows]))
      for name in ('bytes_up', 'bytes_down')
    },
    'bytes_of_client': _size(memory),
    'bytes_of_server': state.model.num_bytes + _size(state.slots),
  }


def _size(tree: Mapping[str, Any]) -> int:
  return sum(
    _size(value) if isinstance(value, Mapping) else np.asarray(value).nbytes
    for value in tree.values()
  )
