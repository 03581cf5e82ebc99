"""Ensembles of runs (Lakshminarayanan et al. 2017): their directories."""

from collections.abc import Sequence
import itertools
import json
import os
import pathlib
import shutil
import tempfile
from typing import Any

from bfl_tf import files, metrics, run_files
from bfl_tf.analysis import loading, model, uncertainty
from bfl_tf.federation import evaluation, experiment, personal
from bfl_tf.runs import checkpoints, directory, run_config, tables

_COSTS = ('bytes_up', 'bytes_down', 'train_seconds')


def write(
  run_dirs: Sequence[str | os.PathLike], folder: str | os.PathLike
) -> dict[str, Any]:
  """Writes the directory of an ensemble, with copies of its runs' models.

  The folder must be new or empty, and is written atomically. Returns the
  content of `summary.json`, with sums of seconds and numbers of weights.
  """
  paths, path = [*map(pathlib.Path, run_dirs)], pathlib.Path(folder)
  if path.exists() and (not path.is_dir() or any(path.iterdir())):
    raise ValueError(f'{path} exists: choose a new folder.')
  ensemble: Any = model.load(paths)
  run = loading.load_run(paths[0])
  calibration = loading.for_thresholds(ensemble, run.dataset)
  run = run._replace(trained=ensemble, calibration=calibration)
  for each, member in zip(paths, ensemble.runs):
    run_config.check_unchanged(each, member.config)
  predictive = ensemble.predictive(run.test.x)
  arrays = ensemble.of_moments(predictive)._asdict()
  summaries = [run_files.read_summary(each) for each in paths]
  scores = _scores(run, predictive)
  if all('personal_nll' in each['final'] for each in summaries):
    scores |= _personal_scores(run)
  histories = [tables.read(each / run_files.METRICS) for each in paths]
  rows = [
    {name: sum(row.get(name, 0) for row in of_round) for name in _COSTS}
    for of_round in itertools.zip_longest(*histories, fillvalue={})
  ]
  rows = [{'round': number, **row} for number, row in enumerate(rows)]
  rows[-1] |= scores
  own_scores = ensemble.config.functions_of_scores
  summary = summaries[0] | {
    'rounds': rows[-1]['round'],
    # A class without examples has no recall.
    'final': {
      name: float(value)
      for name, value in scores.items()
      if value == value and (metrics.find(name) or name in own_scores)
    },
    'members': [str(each) for each in paths],
    'temperature': None,
    # -1 for the default of a run.
    'factors': [each.get('posterior_factor', -1) for each in summaries],
  }
  for name in ('num_trainable', 'num_variational', 'train_seconds'):
    summary[name] = sum(each[name] for each in summaries)
  if run.calibration and not ensemble.needs_site:
    fitted = uncertainty.fitted_temperature(ensemble, run.calibration)
    summary['temperature'] = fitted
  path.parent.mkdir(parents=True, exist_ok=True)
  with tempfile.TemporaryDirectory(prefix='.', dir=path.parent) as scratch:
    draft = pathlib.Path(scratch) / 'draft'
    for number, (source, member) in enumerate(zip(paths, ensemble.runs)):
      copy = draft / run_files.ENSEMBLE / str(number)
      copy.mkdir(parents=True)
      for name in (run_files.FLAGS, run_files.TASK):
        shutil.copyfile(source / name, copy / name)
      # Only personal models need the memories of the clients.
      memories = member.state.memories if ensemble.has_personal_models else {}
      checkpoints.save(member.state._replace(memories=memories), copy)
    for name in (run_files.TASK, run_files.PARTITION):
      shutil.copyfile(paths[0] / name, draft / name)
    text = run_config.text(ensemble.config)
    files.write_text(draft / run_files.FLAGS, text)
    tables.write_csv(draft / run_files.METRICS, rows)
    place = directory.RunDirectory(draft)
    place.write_arrays('predictions', labels=run.test.y, **arrays)
    text = json.dumps(summary, indent=2)
    files.write_text(draft / run_files.SUMMARY, f'{text}\n')
    os.replace(draft, path)
  return summary


def _scores(run, predictive) -> dict[str, float]:
  """Returns the scores of `evaluation.evaluate`."""
  trained, validation = run.trained, run.dataset.validation
  given = trained.likelihood, predictive, run.test.y
  scores = evaluation.of_test(trained.config, run.dataset, *given)
  more = _score(trained, validation) if len(validation.y) else {}
  return scores | {f'validation_{k}': value for k, value in more.items()}


def _personal_scores(run) -> dict[str, float]:
  """Returns the scores of `personal.evaluate`."""
  trained = run.trained
  scores: dict[str, float] = {}
  pieces = experiment.Experiment.build(trained.config, dataset=run.dataset)
  for split, prefix in (('test', ''), ('validation', 'validation_')):
    client_scores = []
    for client, rows in pieces.personal_rows(split).items():
      name, share = trained.clients[client], run.dataset.splits[split]
      own = [
        each.personal(name) if each.has_personal_models else each
        for each in trained.runs
      ]
      client_scores.append(_score(model.Ensemble(own), share.take(rows)))
    scores |= personal.means(client_scores, prefix)
  return scores


def _score(trained, share):
  predictive, bins = trained.predictive(share.x), trained.config.num_bins
  likelihood = trained.likelihood
  return metrics.summarize(likelihood.evaluation(predictive, share.y, bins))
