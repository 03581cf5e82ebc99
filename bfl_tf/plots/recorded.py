"""Readers of the recorded results in a run directory."""

from collections.abc import Mapping, Sequence
import csv
import os
import pathlib
from typing import NamedTuple

import numpy as np

from bfl_tf import files, metrics, run_files

RunDir = str | os.PathLike
# A run directory, several, or by name one directory or a list of seeds.
Runs = RunDir | Sequence[RunDir] | Mapping[str, RunDir | Sequence[RunDir]]


class Predictions(NamedTuple):
  """Predictions of a run's last evaluation; see `bfl_tf.metrics`.

  Attributes:
    labels: `[num_examples]`, integers.
    probs: `[num_examples, num_classes]`, mean probabilities over samples.
  """

  labels: np.ndarray
  probs: np.ndarray
  normalized_entropy: np.ndarray
  aleatoric_uncertainty: np.ndarray
  epistemic_uncertainty: np.ndarray


class Partition(NamedTuple):
  """Number of examples of each class per client.

  Attributes:
    counts: `[num_clients, num_classes]`, integers.
  """

  clients: list[str]
  classes: list[str]
  counts: np.ndarray


def personal(run_dir: RunDir, score: str) -> np.ndarray:
  """Returns `[num_clients]`, the score of each client's own model.

  It is empty if the run has no such scores.
  """
  path = pathlib.Path(run_dir) / run_files.PERSONAL
  if not path.exists():
    return np.zeros(0)
  with path.open(newline='', encoding='utf-8') as file:
    rows = [*csv.DictReader(file)]
  return np.array([float(row[score]) for row in rows if row.get(score)])


def named(runs: Runs) -> dict[str, list[pathlib.Path]]:
  """Returns lists of run directories by name.

  A single directory has its own name. Directories of a list have their paths.
  """
  if isinstance(runs, str | os.PathLike):
    path = pathlib.Path(runs)
    return {path.resolve().name: [path]}
  if not isinstance(runs, Mapping):
    runs = {str(run): run for run in runs}
  listed = {
    name: [of] if isinstance(of, str | os.PathLike) else of
    for name, of in runs.items()
  }
  return {str(name): [*map(pathlib.Path, of)] for name, of in listed.items()}


def metric(run_dir: RunDir, name: str) -> tuple[np.ndarray, np.ndarray]:
  """Reads one column of metrics.csv, without blank cells.

  Returns:
    rounds: `[num_measured]`; 0 is before training.
    values: `[num_measured]`, the values in these rounds.
  """
  path = pathlib.Path(run_dir) / run_files.METRICS
  header, *lines = _table(path)
  rows = [dict(zip(header, line)) for line in lines]
  measured = [(row['round'], row[name]) for row in rows if row.get(name)]
  if not measured:
    raise ValueError(
      f'{path} has no value in column {name!r}; it has {", ".join(header)}.'
    )
  rounds, values = np.array(measured, np.float64).T
  return rounds, values


def is_numeric(run_dir: RunDir) -> bool:
  """Returns whether the labels of a run are numbers."""
  header, *_ = _table(pathlib.Path(run_dir) / run_files.METRICS)
  return 'rmse' in header


def metric_of_seeds(
  run_dirs: Sequence[RunDir], name: str
) -> tuple[np.ndarray, np.ndarray]:
  """Returns a `metric` of runs that differ in their seeds.

  Returns:
    rounds: `[num_measured]`, up to the end of the shortest run.
    values: `[num_measured, num_seeds]`.
  """
  read = [metric(run, name) for run in run_dirs]
  least = min(len(rounds) for rounds, _ in read)
  rounds = read[0][0][:least]
  for run, (others, _) in zip(run_dirs, read):
    if not np.array_equal(others[:least], rounds):
      raise ValueError(
        f'{run} and {run_dirs[0]} have {name!r} at different rounds: runs of '
        'one setting must have the same rounds.'
      )
  return rounds, np.stack([values[:least] for _, values in read], axis=-1)


def predictions(run_dir: RunDir) -> Predictions:
  """Reads predictions.npz."""
  arrays = files.read_npz(pathlib.Path(run_dir) / run_files.PREDICTIONS)
  return Predictions(*(arrays[name] for name in Predictions._fields))


def numeric_predictions(run_dir: RunDir) -> metrics.NumericEvaluation:
  """Reads predictions.npz of a run with numeric labels."""
  arrays = files.read_npz(pathlib.Path(run_dir) / run_files.PREDICTIONS)
  return metrics.NumericEvaluation(
    arrays['mean'],
    arrays['labels'],
    arrays['aleatoric_uncertainty'],
    arrays['epistemic_uncertainty'],
  )


def all_predictions(runs: Runs) -> dict[str, list[Predictions]]:
  """Reads the predictions of runs, as a list of seeds by name."""
  return {
    name: [predictions(run) for run in seeds]
    for name, seeds in named(runs).items()
  }


def members(run_dir: RunDir, group: str) -> tuple[np.ndarray, np.ndarray]:
  """Reads a group of members.npz.

  Returns:
    confidence: `[num_members, num_examples]`, the largest probability.
    correct: `[num_members, num_examples]`, booleans.
  """
  arrays = files.read_npz(pathlib.Path(run_dir) / run_files.MEMBERS)
  correct = arrays[f'correct_{group}'].astype(bool)
  return arrays[f'confidence_{group}'], correct


def partition(run_dir: RunDir) -> Partition:
  """Reads partition.csv."""
  path = pathlib.Path(run_dir) / run_files.PARTITION
  with files.reading(path):
    header, *rows = _table(path)
    if not path.read_text('utf-8').endswith('\n'):
      raise ValueError('The last line is incomplete.')
    counts = np.array([row[1:] for row in rows], np.int64)
    counts = counts.reshape(-1, len(header) - 1)
  classes = [name.removeprefix('class_') for name in header[1:]]
  return Partition([row[0] for row in rows], classes, counts)


def _table(path):
  with files.reading(path), open(path, newline='', encoding='utf-8') as file:
    return [line for line in csv.reader(file) if line]
