"""Logging of a run's rows to Weights & Biases and MLflow, offline by default.

Their environment variables set the destination: WANDB_MODE=online,
WANDB_PROJECT; MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME.
"""

from collections.abc import Collection, Mapping, Sequence
import importlib.util
import json
import os
import pathlib
import re
import time
from typing import Any

from absl import logging

from bfl_tf import files, run_files
from bfl_tf.declare import user_code

_PROJECT = 'bfl_tf'


def check(names: Collection[str]) -> None:
  """Raises a ValueError if the package of a tracker is not installed."""
  for name in names:
    if importlib.util.find_spec(name) is None:
      raise ValueError(
        f"--tracker={name} needs its extra: pip install '.[{name}]'."
      )


class Trackers:
  """Sends each row of a run to every tracker, at most once.

  `trackers.json` contains the run ID and the number of sent rows per tracker.
  It is written before a row is sent, so a killed process may lose a row but
  never sends one twice.
  """

  def __init__(
    self, names: Collection[str], path: pathlib.Path, flags: Mapping[str, str]
  ):
    """Reads the trackers' runs to resume; the first row starts new ones."""
    self._names, self._path, self._flags = list(names), path, flags
    self._runs: dict[str, Any] = {}
    sent = path / run_files.TRACKERS
    self._sent = files.read_json(sent) if sent.exists() else {}

  def send(self, rows: Sequence[Mapping[str, Any]]) -> None:
    """Sends the rows, from round 0, that a tracker does not have yet."""
    for name in list(self._names):
      # A failing tracker must not stop the run, whose records are complete.
      if error := user_code.attempt(self._send, name, rows):
        logging.warning('--tracker=%s gets no more rows: %s', name, error)
        self._names.remove(name)

  def _send(self, name, rows):
    run_id, sent = self._sent.get(name, (None, 0))
    if name not in self._runs:
      self._runs[name] = _TRACKERS[name](self._path, self._flags, run_id)
    run = self._runs[name]
    for number, row in enumerate(rows[sent:], sent + 1):
      self._sent[name] = run.id, number
      text = json.dumps(self._sent)
      files.write_text(self._path / run_files.TRACKERS, f'{text}\n')
      run.log(row['round'], numbers(row))

  def close(self, finished: bool) -> None:
    """Closes the trackers' runs with the status finished or not."""
    while self._runs:
      name, run = self._runs.popitem()
      if error := user_code.attempt(run.close, finished):
        logging.warning('--tracker=%s is not closed: %s', name, error)


def numbers(row: Mapping[str, Any]) -> dict[str, float]:
  """Returns the numeric values of a row without the round."""
  return {
    name: float(value)
    for name, value in row.items()
    if isinstance(value, int | float) and name != 'round'
  }


def _name(path):
  # In a sweep, the last part of the path is only the seed.
  return '/'.join(path.absolute().parts[-2:])


class _Wandb:
  def __init__(self, path, flags, run_id):
    import wandb

    mode = os.environ.get('WANDB_MODE', 'offline')
    self._run = wandb.init(
      project=os.environ.get('WANDB_PROJECT', _PROJECT),
      dir=path,
      name=_name(path),
      id=run_id,
      resume='allow',
      config=dict(flags),
      mode=mode,
      # One process may have several separate runs.
      reinit='create_new',
      settings=wandb.Settings(console='off', silent=mode == 'offline'),
    )
    self.id = self._run.id

  def log(self, step, values):
    self._run.log(values, step=step)

  def close(self, finished):
    self._run.finish(exit_code=int(not finished))


class _MLflow:
  def __init__(self, path, flags, run_id):
    uri = os.environ.get('MLFLOW_TRACKING_URI')
    if not uri:
      uri = str(path.absolute() / 'mlruns')
      os.environ.setdefault('MLFLOW_ALLOW_FILE_STORE', 'true')
      os.environ.setdefault('MLFLOW_DISABLE_TELEMETRY', 'true')
    from mlflow import entities, exceptions, tracking

    self._client, self._metric = tracking.MlflowClient(uri), entities.Metric
    self.id = run_id
    if run_id is None:
      place = self._experiment(exceptions.MlflowException)
      self.id = self._client.create_run(place, run_name=_name(path)).info.run_id
      params = [entities.Param(*flag) for flag in flags.items()]
      # MLflow accepts at most 100 parameters per batch.
      for some in (params[:100], params[100:]):
        self._client.log_batch(self.id, params=some)

  def _experiment(self, error):
    name = os.environ.get('MLFLOW_EXPERIMENT_NAME', _PROJECT)
    try:
      return self._client.create_experiment(name)
    except error:  # It exists; another process may have just created it.
      return self._client.get_experiment_by_name(name).experiment_id

  def log(self, step, values):
    now = int(1000 * time.time())
    # MLflow allows no plus in names, but groups like A+C contain one.
    named = {re.sub(r'[^\w.:/ -]', '-', n): v for n, v in values.items()}
    metrics = [self._metric(n, v, now, step) for n, v in named.items()]
    self._client.log_batch(self.id, metrics)

  def close(self, finished):
    self._client.set_terminated(self.id, 'FINISHED' if finished else 'KILLED')


_TRACKERS: Mapping[str, Any] = {'wandb': _Wandb, 'mlflow': _MLflow}
