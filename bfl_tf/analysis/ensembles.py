"""Ensembles of runs: directories of runs that predict together.

References:
  B. Lakshminarayanan, A. Pritzel, C. Blundell. Simple and scalable predictive
    uncertainty estimation using deep ensembles. NeurIPS 2017.
"""

from collections.abc import Iterator, Sequence
import json
import os
import pathlib
import shutil
import tempfile
from typing import Any

import numpy as np

from bfl_tf import files, plots, run_files, version
from bfl_tf.analysis import loading, model, uncertainty
from bfl_tf.federation import evaluation, personal, run_data
from bfl_tf.federation.plan import Plan
from bfl_tf.runs import checkpoints, directory, flags_file, tables
from bfl_tf.runs.run import final_scores, write_predictions

_COSTS = ('bytes_up', 'bytes_down', 'train_seconds')


def write(
  run_dirs: Sequence[str | os.PathLike],
  folder: str | os.PathLike,
  draw_plots: bool = True,
) -> dict[str, Any]:
  """Writes the directory of an ensemble, which contains copies of its runs.

  Args:
    run_dirs: Directories of finished runs with the same data.
    folder: New or empty folder, which is written atomically.

  Returns:
    The content of `summary.json`. Bytes and seconds are sums over the runs.

  Raises:
    ValueError: The folder is not empty, or the runs cannot form an ensemble, as
      by `bfl_tf.load`, or their data have changed.
  """
  paths, path = [*map(pathlib.Path, run_dirs)], pathlib.Path(folder)
  if path.exists() and (not path.is_dir() or any(path.iterdir())):
    raise ValueError(f'--output_dir={path} exists: choose a new folder.')
  ensemble = model.load(paths)
  assert isinstance(ensemble, model.Ensemble)
  dataset = loading.load_run(paths[0]).dataset
  predictive = ensemble.predictive(dataset.test.x)
  summaries = [run_files.read_summary(each) for each in paths]
  rows = list(_costs(paths))
  rows[-1] |= _scores(ensemble, predictive, dataset, summaries)
  ours = {
    'version': version.__version__,
    'rounds': rows[-1]['round'],
    'final': final_scores(rows[-1]),
    'classes': list(ensemble.task.classes),
    'members': [str(each) for each in paths],
  }
  for name in ('num_trainable', 'num_variational', 'train_seconds'):
    ours[name] = sum(summary[name] for summary in summaries)
  if dataset.calibration is not None and not ensemble.needs_site:
    held = dataset.calibration
    ours['temperature'] = uncertainty.fitted_temperature(ensemble, held)
  path.parent.mkdir(parents=True, exist_ok=True)
  with tempfile.TemporaryDirectory(prefix='.', dir=path.parent) as scratch:
    made = pathlib.Path(scratch) / 'made'
    _write_runs(ensemble, paths, made)
    place = directory.RunDirectory(made)
    for name in (run_files.TASK, run_files.PARTITION):
      shutil.copyfile(paths[0] / name, made / name)
    text = flags_file.text(ensemble.config)
    files.write_text(made / run_files.FLAGS, text)
    tables.write_csv(made / run_files.METRICS, rows)
    likelihood = ensemble.likelihood
    write_predictions(place, likelihood, predictive, dataset.test)
    if draw_plots:
      plots.draw_run(made, ensemble.config.num_bins)
    text = json.dumps(ours, indent=2)
    files.write_text(made / run_files.SUMMARY, f'{text}\n')
    os.replace(made, path)
  return ours


def _write_runs(ensemble, paths, made):
  """Writes the files that `model.load` reads of each run."""
  for number, (path, run) in enumerate(zip(paths, ensemble.runs)):
    place = made / run_files.ENSEMBLE / str(number)
    place.mkdir(parents=True)
    for name in (run_files.FLAGS, run_files.TASK):
      shutil.copyfile(path / name, place / name)
    # Only personal models need the memories of clients.
    keep = ensemble.has_personal_models
    state = run.state if keep else run.state._replace(memories={})
    checkpoints.save(state, place)


def _costs(paths) -> Iterator[dict[str, Any]]:
  """Yields a row of `metrics.csv` per round: sums over the runs."""
  found = [tables.read(path / run_files.METRICS) for path in paths]
  for number in range(max(map(len, found))):
    rows = [table[number] for table in found if number < len(table)]
    sums = {name: sum(row.get(name, 0) for row in rows) for name in _COSTS}
    yield {'round': number, **sums}


def _scores(ensemble, predictive, dataset, summaries) -> dict[str, float]:
  """Returns the scores of an evaluation, as `evaluation.evaluate`."""
  likelihood, bins = ensemble.likelihood, ensemble.config.num_bins
  test, validation = dataset.test, dataset.validation
  scores = evaluation.score_test(likelihood, predictive, dataset, test.y, bins)
  if all('personal_nll' in summary['final'] for summary in summaries):
    scores |= _personal_scores(ensemble, dataset)
  if len(validation.y):
    held = ensemble.predictive(validation.x)
    of_held = evaluation.score(likelihood, held, validation.y, bins)
    scores |= {f'validation_{name}': v for name, v in of_held.items()}
  return scores


def _personal_scores(ensemble, dataset) -> dict[str, float]:
  """Returns the mean scores of the clients' models, as `personal.evaluate`."""
  config, scores = ensemble.config, {}
  plan, likelihood = Plan.of(config), ensemble.likelihood
  partition, _ = run_data.partition_dataset(config, dataset)
  honest = [c for c in range(len(partition)) if not plan.attacks_of(c)]
  for split, prefix in (('test', ''), ('validation', 'validation_')):
    found = []
    for client, rows in run_data.personal_rows(
      dataset, split, partition, honest, config.seed_of_data
    ).items():
      share, name = dataset.splits[split].take(rows), ensemble.clients[client]
      own = model.Ensemble([
        run.personal(name) if run.has_personal_models else run
        for run in ensemble.runs
      ])  # fmt: skip
      of_client = own.predictive(share.x), share.y, config.num_bins
      found.append(evaluation.score(likelihood, *of_client))
    for name in personal.SCORES:
      values = [each[name] for each in found if name in each]
      if values:
        scores[f'{prefix}personal_{name}'] = float(np.mean(values))
      if values and name == 'accuracy':
        scores[f'{prefix}personal_lowest_accuracy'] = min(values)
  return scores
