"""A run's rows in Weights & Biases and in MLflow too, offline unless told.

Where rows go their own variables say: WANDB_MODE=online, WANDB_PROJECT;
MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME.
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
from bfl_tf.config import user_code

_PROJECT = 'bfl_tf'


def check(names: Collection[str]) -> None:
  """Raises a ValueError if the package of a tracker is not there."""
  for name in names:
    if importlib.util.find_spec(name) is None:
      raise ValueError(
        f"--tracker={name} needs its extra: pip install '.[{name}]'."
      )


class Trackers:
  """Sends each row of a run once, to one run of every tracker.

  `trackers.json` has the trackers' runs and how many rows each was sent. It is
  written before a row is sent: a process that is killed in between leaves a
  round out there, and none goes twice.
  """

  def __init__(
    self, names: Collection[str], path: pathlib.Path, flags: Mapping[str, str]
  ):
    """Goes on with the runs that trackers have, or begins them with a row."""
    self._names, self._path, self._flags = list(names), path, flags
    self._runs: dict[str, Any] = {}
    sent = path / run_files.TRACKERS
    self._sent = json.loads(sent.read_text()) if sent.exists() else {}

  def send(self, rows: Sequence[Mapping[str, Any]]) -> None:
    """Sends those that a tracker lacks of all rows, from round 0 on."""
    for name in list(self._names):
      # The run's own records are complete, whatever a tracker does.
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
    """Says to trackers whether the run has come to its end."""
    while self._runs:
      name, run = self._runs.popitem()
      if error := user_code.attempt(run.close, finished):
        logging.warning('--tracker=%s is not closed: %s', name, error)


def numbers(row: Mapping[str, Any]) -> dict[str, float]:
  """Returns what can be drawn over rounds."""
  return {
    name: float(value)
    for name, value in row.items()
    if isinstance(value, int | float) and name != 'round'
  }


def _name(path):
  # In a sweep the last part is the seed alone.
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
      # Several runs of a process, each by itself.
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
      # It takes 100 at a time.
      for some in (params[:100], params[100:]):
        self._client.log_batch(self.id, params=some)

  def _experiment(self, error):
    name = os.environ.get('MLFLOW_EXPERIMENT_NAME', _PROJECT)
    try:
      return self._client.create_experiment(name)
    except error:  # It is there; another process may have made it just now.
      return self._client.get_experiment_by_name(name).experiment_id

  def log(self, step, values):
    now = int(1000 * time.time())
    # Of the names of groups, A+C, it takes no plus.
    named = {re.sub(r'[^\w.:/ -]', '-', n): v for n, v in values.items()}
    metrics = [self._metric(n, v, now, step) for n, v in named.items()]
    self._client.log_batch(self.id, metrics)

  def close(self, finished):
    self._client.set_terminated(self.id, 'FINISHED' if finished else 'KILLED')


_TRACKERS: Mapping[str, Any] = {'wandb': _Wandb, 'mlflow': _MLflow}
