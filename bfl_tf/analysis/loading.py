"""Loading of a finished run together with its data."""

from collections.abc import Mapping
import os
import pathlib
import types
from typing import NamedTuple

import numpy as np

from bfl_tf import data, run_files
from bfl_tf.analysis import model, prediction_sets, site_statistics
from bfl_tf.data import shares
from bfl_tf.federation import evaluation, run_data
from bfl_tf.runs import directory, run_config, task


class LoadedRun(NamedTuple):
  """A finished run with its held-out examples.

  Attributes:
    rounds: Numbers of accepted and of requested updates, by client.
  """

  trained: model.Trained
  dataset: data.Dataset
  calibration: data.Split | None
  test: data.Split
  score: str
  sets_by: str = ''
  rounds: Mapping[str, tuple[int, int]] = types.MappingProxyType({})

  def predict(self, share: data.Split) -> model.AnyPrediction:
    """Predicts a share: by site if only personal models are usable."""
    trained, sites = self.trained, share.sites
    if not (trained.needs_site and sites):
      return trained.predict(share.x)
    outputs = [trained.personal(s).predict(share.x[rows]) for s, rows in sites]
    order = np.argsort(np.concatenate([rows for _, rows in sites]))
    return type(outputs[0])(*(np.concatenate(v)[order] for v in zip(*outputs)))

  def held_counts(
    self, share: data.Split, prediction: model.AnyPrediction | None = None
  ) -> dict[str, site_statistics.HeldCounts]:
    """Returns the counts of a share by site, from `predict` by default."""
    sites = share.sites or [('', np.arange(len(share.y)))]
    prediction = prediction or self.predict(share)
    return {
      name: site_statistics.HeldCounts.of(
        model.take(prediction, rows), share.y[rows], self.score
      )
      for name, rows in sites
    }

  def sets(
    self, counts: Mapping[str, site_statistics.HeldCounts]
  ) -> prediction_sets.PredictionSets:
    """Returns prediction sets from the counts of sites."""
    return prediction_sets.PredictionSets.of(
      {name: each.counts for name, each in counts.items()},
      self.trained.num_samples(),
      self.score,
      self.sets_by,
      self.trained.task.classes,
    )


def for_thresholds(
  trained: model.Trained, dataset: data.Dataset
) -> data.Split | None:
  """Returns the calibration examples that did not choose a posterior factor."""
  split, chosen = dataset.calibration, trained.config.posterior_factor < 0
  if split is None or trained.factor is None or not chosen:
    return split
  return split if len(dataset.validation.y) else evaluation.halves(dataset)[1]


def load_run(
  run_dir: str | os.PathLike,
  calibrate_on_test: float = 0.0,
  score: str = 'lac',
  min_site_examples: int = 0,
  sets_by: str = '',
) -> LoadedRun:
  """Loads a finished run and its data.

  A run without calibration examples may calibrate on a fraction of the test
  examples, which are then not scored.
  """
  if directory.is_sites_own(run_dir):
    raise ValueError(
      f'{run_dir} is a personalized model: only predict and export accept it. '
      "Name the run's own directory."
    )
  # A new report does not depend on an earlier one.
  trained = model.without_report(run_dir)
  score = prediction_sets.RESIDUAL if trained.task.is_numeric else score
  config, path = trained.config, pathlib.Path(run_dir)
  run_config.check_unchanged(path, config)
  dataset = run_data.load(config)
  data_task, nodes = task.Task.of(dataset), path / run_files.NODES
  if nodes.exists() and not trained.task.is_like(data_task):
    raise ValueError(
      f'{path}: its clients trained on files of their nodes, which are not on '
      'this machine. Use bfl-tf report with --superlink, or predict and '
      'export, which need no training data.'
    )
  trained.task.check_examples(path, data_task)
  dataset = shares.without_small_sites(dataset, 'test', min_site_examples)
  calibration, test = for_thresholds(trained, dataset), dataset.test
  if calibrate_on_test and calibration is not None:
    raise ValueError(
      f'{path} held out a calibration share: remove --calibrate_on_test.'
    )
  if calibrate_on_test:
    taken, rest = shares.hold_out(
      str(path), test, 'calibrate_on_test', calibrate_on_test
    )
    calibration, test = test.take(taken), test.take(rest)
  rounds = directory.contributions(path)
  return LoadedRun(trained, dataset, calibration, test, score, sets_by, rounds)
