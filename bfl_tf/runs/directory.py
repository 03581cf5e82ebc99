"""The directory of a run and its files.

All files are written atomically, except that `metrics.csv` grows by rows.
`summary.json` is written last: a run is finished if its summary has all rounds.
"""

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import csv
import hashlib
import io
import json
import os
import pathlib
import shutil
from typing import Any

import filelock
import numpy as np

from bfl_tf import files, run_files
from bfl_tf.config.config import Config
from bfl_tf.runs import run_config, tables, trackers
from bfl_tf.runs import task as task_lib
from bfl_tf.startup import tf

_LOCK = '.lock'
# Temporary files of killed processes.
_UNFINISHED = '.*.tmp'


class BusyError(ValueError):
  """Another process uses the run directory."""


def is_sites_own(directory: str | os.PathLike) -> bool:
  """Returns whether a directory contains a personalized model, not a run."""
  return (pathlib.Path(directory) / run_files.SITE).exists()


def read_clients(directory: str | os.PathLike) -> list[str]:
  """Returns the names of a run's clients from `partition.csv`."""
  path = pathlib.Path(directory) / run_files.PARTITION
  with files.reading(path, run_files.remedy(path.parent)):
    text = path.read_text('utf-8')
    return [row['client'] for row in csv.DictReader(io.StringIO(text))]


def contributions(
  directory: str | os.PathLike,
) -> dict[str, tuple[int, int]]:
  """Returns the numbers of accepted and of requested updates by client.

  Under privacy, it is empty, because the sample of clients is secret.
  """
  path = pathlib.Path(directory)
  rows = tables.read(path / run_files.METRICS)[1:]
  config = run_config.read_config(path) if rows else None
  if config is None or config.privacy_mechanism.is_private:
    return {}
  sample, sampled = config.privacy_mechanism.sample, collections.Counter[int]()
  for number in range(len(rows)):
    sampled.update(sample(config.seed_of_data, number))
  lost = ' '.join(row.get('rejected', '') for row in rows).split()
  names, times = read_clients(path), collections.Counter(map(int, lost))
  return {names[c]: (n - times[c], n) for c, n in sorted(sampled.items())}


def absent(directory: str | os.PathLike) -> list[str]:
  """Returns the clients without an accepted update: `Celle: 0 of 4 rounds`."""
  rounds = contributions(directory)
  return [f'{c}: 0 of {n} rounds' for c, (taken, n) in rounds.items()
          if not taken]  # fmt: skip


class RunDirectory:
  """The directory with the results of a run."""

  def __init__(self, path: str | os.PathLike, overwrite: bool = False):
    """Checks the arguments; see the attributes."""
    self.path = pathlib.Path(path)
    self.overwrite = overwrite
    self.replaces = False
    self.rows = tables.Rows(self.path / run_files.METRICS)
    self._writer: Any = None
    self._trackers: Any = None

  def check(self, config: Config) -> None:
    """Rejects a directory that contains other files.

    The same run with fewer rounds is accepted. Another run is replaced if it
    has not finished its first round, or with `overwrite`. A tracker without its
    package is also rejected.
    """
    trackers.check(config.tracker)
    paths = [*self.path.iterdir()] if self.path.is_dir() else []
    if all(path.match(_UNFINISHED) or path.name == _LOCK for path in paths):
      self._check_writable()
      return
    if not (self.path / run_files.FLAGS).exists():
      raise ValueError(
        f'--output_dir={self.path} is neither empty nor a run directory (it '
        f'has no {run_files.FLAGS}): choose another.'
      )
    if is_sites_own(self.path) or (self.path / run_files.ENSEMBLE).exists():
      raise ValueError(
        f'--output_dir={self.path} holds a personalized model or an ensemble, '
        'not a run: choose another.'
      )
    rows = self.path / run_files.METRICS
    has_trained = run_files.is_finished(self.path) or (
      rows.is_file() and len(rows.read_bytes().splitlines()) > 2
    )
    may_replace = self.overwrite or not has_trained
    try:
      obstacle = self._obstacle(config)
    except ValueError as error:  # A run of another version.
      obstacle, may_replace = str(error).rstrip('.'), self.overwrite
    self.replaces = bool(obstacle) and may_replace
    if obstacle and not self.replaces:
      raise ValueError(
        f'--output_dir={self.path} holds another run ({obstacle}): delete it '
        'to train again, or choose another directory.'
      )

  def clear(self) -> None:
    """Removes the other run that this one replaces."""
    if self.replaces:
      self._remove(run_files.ALL)
      self.rows = tables.Rows(self.path / run_files.METRICS)
      self.replaces = False

  def _remove(self, names: Iterable[str]) -> None:
    for path in (self.path / name for name in names):
      if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
      else:
        path.unlink(missing_ok=True)

  def _obstacle(self, config) -> str | None:
    """Returns why the run in this directory cannot be continued, or None."""
    theirs = run_config.read_config(self.path)
    differ = run_config.differences(config, theirs)
    if differ == ['num_rounds']:
      obstacle = run_config.obstacle_to_more_rounds(config, theirs.num_rounds)
      if obstacle:
        return f'--num_rounds={config.num_rounds} cannot extend it: {obstacle}'
    elif differ:
      # Without settings of a method that only one of the runs has.
      ours = run_config.identity(config)
      flags = [
        f'--{name}={text}'
        for name, text in run_config.identity(theirs).items()
        if ours.get(name, text) != text
      ]
      return f'it was begun with {" ".join(flags)}'
    if changed := ', '.join(run_config.changed(self.path, config)):
      return f'the file or code that {changed} names has changed'
    return None

  def _check_writable(self):
    place = self.path.absolute()
    while not place.exists():
      place = place.parent
    if not (place.is_dir() and os.access(place, os.W_OK)):
      raise ValueError(f'--output_dir={self.path}: {place} cannot be written.')

  @contextlib.contextmanager
  def locked(self, flag: str = 'output_dir') -> Iterator[None]:
    """Creates the directory and locks it against other processes.

    Temporary files of killed processes are removed.
    """
    self._check_writable()
    self.path.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(self.path / _LOCK)
    try:
      lock.acquire(timeout=0)
    except filelock.Timeout:
      raise BusyError(
        f'--{flag}={self.path} is in use by another process: wait for it, '
        'or choose another directory.'
      ) from None
    try:
      paths = [*self.path.rglob(_UNFINISHED)]
      self._remove(str(path.relative_to(self.path)) for path in paths)
      yield
    finally:
      try:
        if self._trackers:
          self._trackers.close(False)
      finally:
        lock.release()

  def start(self, config: Config, rounds_done: int) -> None:
    """Writes the flags and removes files that are no longer valid.

    For more rounds, the old summary is removed first, and files of the old last
    model are removed last. So an interrupted call can be repeated.
    """
    self._remove([run_files.SUMMARY])
    files.write_text(self.path / run_files.FLAGS, run_config.text(config))
    if rounds_done < config.final_round:
      self._remove(run_files.OF_LAST_MODEL)
    self._trackers = trackers.Trackers(
      config.tracker, self.path, run_config.settings(config)
    )

  def keep(self, name: str, text: str, mode: int = 0o666) -> None:
    """Writes a text file durably unless it exists."""
    if not (self.path / name).exists():
      files.write_text(self.path / name, text, mode)
      folder = os.open(self.path, os.O_RDONLY)
      os.fsync(folder)
      os.close(folder)

  def private_seed(self) -> int:
    """Returns the seed of noise and samples, from the secret and the flags."""
    path = self.path / run_files.SECRET
    try:
      secret = bytes.fromhex(path.read_text('utf-8'))
    except (OSError, ValueError):
      secret = b''
    if len(secret) != 32:
      raise files.UnreadableError(
        f'{path} is missing or damaged: restore it from a copy, or delete '
        f'{self.path} to train again.'
      )
    run = run_config.digest(self.path).encode()
    return int.from_bytes(hashlib.sha256(secret + run).digest(), 'big')

  def check_task(self, task: task_lib.Task) -> None:
    """Rejects training examples that differ from those of `task.json`."""
    if (self.path / run_files.TASK).exists() and not self.replaces:
      task_lib.read(self.path / run_files.TASK).check_examples(self.path, task)

  def check_nodes(self, nodes: str) -> None:
    """Rejects nodes whose files differ from those of `nodes.json`."""
    path = self.path / run_files.NODES
    if not path.exists() or self.replaces:
      return
    if files.read_json(path) != json.loads(nodes or '{}'):
      raise ValueError(
        f'{self.path}: the files of some nodes have changed since the first '
        'round: restore them, or choose another directory.'
      )

  def write_partition(
    self, counts: np.ndarray, classes: Sequence[str], clients: Sequence[str]
  ) -> None:
    """Writes `partition.csv`, the class counts of clients."""
    columns = [f'class_{name}' for name in classes or range(counts.shape[1])]
    names = clients or range(len(counts))
    rows = [
      {'client': name, **dict(zip(columns, row))}
      for name, row in zip(names, counts)
    ]
    tables.write_csv(self.path / run_files.PARTITION, rows)

  def add(self, row: Mapping[str, Any]) -> None:
    """Appends a row to `metrics.csv`, to TensorBoard and to trackers."""
    self.rows.add(row)
    if self._writer is None:
      self._writer = tf.summary.create_file_writer(
        str(self.path / run_files.TENSORBOARD)
      )
    kind = tf.compat.v1.SummaryMetadata
    # As in `tf.summary.scalar`, which needs TensorBoard.
    scalar = kind(plugin_data=kind.PluginData(plugin_name='scalars'))
    with self._writer.as_default(step=row['round']):
      for name, value in trackers.numbers(self.rows[-1]).items():
        # A variance of numeric labels may exceed float32.
        with np.errstate(over='ignore'):
          narrow = np.float32(value)
        tf.summary.write(name, narrow, metadata=scalar)
    self._writer.flush()
    self._trackers.send(self.rows)

  def write_arrays(self, name: str, **arrays: Any) -> None:
    """Writes `<name>.npz` with arrays for plots."""
    with (
      files.replacing(self.path / f'{name}.npz') as path,
      path.open('wb') as file,
    ):
      np.savez_compressed(file, **arrays)

  def finish(self, summary: Mapping[str, Any]) -> None:
    """Writes `summary.json`, which marks the run as finished."""
    # An earlier process may have ended before it sent the last row.
    self._trackers.send(self.rows)
    text = json.dumps(summary, indent=2)
    files.write_text(self.path / run_files.SUMMARY, f'{text}\n')
    self._trackers.close(True)

  def summary(self, num_rounds: int) -> dict[str, Any] | None:
    """Returns the summary of a run with this number of rounds, or None."""
    if self.replaces:
      return None
    try:
      summary = run_files.read_summary(self.path)
    except FileNotFoundError:
      return None
    return summary if summary.get('rounds') == num_rounds else None
