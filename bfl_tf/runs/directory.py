"""The files of a run directory: flags, rows, summary, predictions."""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import csv
import itertools
import json
import os
import pathlib
import shutil
from typing import Any
import zipfile

import filelock
import numpy as np
import tensorflow as tf

from bfl_tf import archives
from bfl_tf.config import config as config_lib
from bfl_tf.runs import checkpoints, digests, identity, promises
from bfl_tf.runs import flags_file as recorded
from bfl_tf.runs import task as task_lib

# What `tf.summary.scalar` writes; that one wants TensorBoard installed here.
_SCALAR = tf.compat.v1.SummaryMetadata(
  plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name='scalars')
)


_LOCK = '.lock'
# The last holds for the model of that end alone.
_WRITTEN_LAST = (
  'summary.json',
  'predictions.npz',
  'members.npz',
  promises.FILE,
)


class BusyError(ValueError):
  """Another process plays this run."""


class RunDirectory:
  """Where a run's results live; every file is replaced whole.

  Attributes:
    path: the directory.
    rows: rows of `metrics.csv`, by column.
  """

  def __init__(self, path: str | os.PathLike):
    self.path = pathlib.Path(path)
    self.rows: list[dict[str, Any]] = []
    self._writer: Any = None
    self._extends = False
    self._digests = digests.Digests(self.path)

  @property
  def checkpoints(self) -> pathlib.Path:
    """Where the state is saved."""
    return self.path / 'checkpoints'

  def check(self, config: config_lib.Config) -> None:
    """Refuses a directory that holds anything but this very run.

    Raises:
      ValueError: naming the flags that differ, or what the directory is.
    """
    # Asked again once it is locked: another process may have extended it.
    self._extends = False
    if not self.path.is_dir() or all(map(_is_trace, self.path.iterdir())):
      self._check_writable()
      return
    if not (self.path / 'flags.txt').exists():
      raise ValueError(
        f'--output_dir={self.path} is not empty and holds no run, which has a '
        'flags.txt: choose another.'
      )
    if recorded.is_sites_own(self.path):
      raise ValueError(
        f"--output_dir={self.path} holds a site's own model and no run: choose "
        'another.'
      )
    try:
      theirs = recorded.read_config(self.path)
    except ValueError as error:
      raise ValueError(
        f'--output_dir={self.path}: flags.txt{self._as_written("flags.txt")}: '
        f'{error}'
      ) from error
    differ = recorded.differences(config, theirs)
    if differ == ['num_rounds']:
      self._check_more_rounds(config, theirs.num_rounds)
    elif differ:
      names = ', '.join(f'--{name}' for name in differ)
      raise ValueError(
        f'--output_dir={self.path} holds another run; {names} differ: choose '
        f'another directory or the flags of its flags.txt'
        f'{self._as_written("flags.txt")}.'
      )
    changed = identity.changed(config, (self.path / 'flags.txt').read_text())
    if changed:
      raise ValueError(
        f'--output_dir={self.path} holds another run: what '
        f'{", ".join(changed)} names has changed since: choose another '
        'directory.'
      )
    self._check_rows()

  def _as_written(self, name):
    changed = self._digests.changed([name])
    return ', which is not as it was written' if changed else ''

  def check_free(self) -> None:
    """Refuses a directory that no run can be played in.

    Raises:
      BusyError: another process is in there.
      ValueError: it cannot be written.
    """
    self._check_writable()
    # Where nobody has been there is nothing to lock, and nothing is left.
    if (self.path / _LOCK).exists():
      with self.locked():
        pass

  def _check_rows(self):
    """A row is written before its checkpoint: one without rows lost them."""
    rounds, rows = checkpoints.rounds(self.checkpoints), self.whole_rows()
    if rounds and len(rows) <= rounds[-1]:
      raise ValueError(
        f'{self.path}/metrics.csv has whole rows of its first {len(rows)} '
        f'rounds only, and the oldest checkpoint is of round {rounds[-1]}: put '
        'the file back, or delete the directory to begin again.'
      )

  def _check_more_rounds(self, config, num_rounds):
    obstacle = identity.obstacle_to_more_rounds(config, num_rounds)
    if obstacle:
      raise ValueError(
        f'--output_dir={self.path} holds another run; --num_rounds='
        f'{config.num_rounds} cannot extend it: {obstacle}. Choose another '
        'directory.'
      )
    self._extends = True

  def can_be_written(self) -> bool:
    """Whether files can be, also where the directory is yet to be made."""
    place = self._nearest()
    return place.is_dir() and os.access(place, os.W_OK)

  def _check_writable(self):
    if not self.can_be_written():
      raise ValueError(
        f'--output_dir={self.path}: {self._nearest()} cannot be written.'
      )

  def _nearest(self):
    place = self.path.absolute()
    while not place.exists():
      place = place.parent
    return place

  @contextlib.contextmanager
  def locked(self) -> Iterator[None]:
    """Keeps other processes out; makes the directory.

    Raises:
      BusyError: one is in there.
      ValueError: it cannot be written.
    """
    self._check_writable()
    self.path.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(self.path / _LOCK)
    try:
      lock.acquire(timeout=0)
    except filelock.Timeout:
      raise BusyError(
        f'--output_dir={self.path} is in use by another process: wait for it, '
        'or choose another directory.'
      ) from None
    try:
      yield
    finally:
      lock.release()

  def start(self, config: config_lib.Config) -> None:
    """Writes down what the run is."""
    if self._extends:
      self._forget_the_end()
    if self._extends or self._lacks('flags.txt'):
      self.write_flags(config)

  def _lacks(self, name):
    path = self.path / name
    return not path.exists() or bool(self._digests.changed([name]))

  def _forget_the_end(self):
    """Removes what only the end of a run writes, and this one may not."""
    # First, so that a run cut off here is unfinished and not a wrong one.
    for name in _WRITTEN_LAST:
      (self.path / name).unlink(missing_ok=True)
    # The last two are what was asked of the model of that end.
    for name in ('plots', 'sites', 'doubt'):
      shutil.rmtree(self.path / name, ignore_errors=True)
    self._digests.forget([*_WRITTEN_LAST, 'plots'])

  def write_flags(self, config: config_lib.Config) -> None:
    """Writes `flags.txt`: what the run is."""
    first, *flags = recorded.flag_lines(config)
    lines = [first, *identity.digest_lines(config), *flags]
    self._write('flags.txt', '\n'.join(lines) + '\n')

  def write_task(self, task: task_lib.Task) -> None:
    """Writes `task.json`, unless it is there: what a model is asked."""
    if self._lacks('task.json'):
      self._write('task.json', task.to_json())

  @property
  def extends(self) -> bool:
    """Whether what is checked is more rounds of the run that is there."""
    return self._extends

  def check_task(self, task: task_lib.Task) -> None:
    """Refuses data that are not those of `task.json`."""
    if not self._lacks('task.json'):
      path = self.path / 'task.json'
      try:
        theirs = task_lib.Task.from_json(path.read_text())
      except (TypeError, ValueError) as error:
        raise ValueError(f'{path} cannot be read: delete it.') from error
      theirs.check_order(self.path, task)
      theirs.check_examples(self.path, task)

  def write_nodes(self, text: str) -> None:
    """Writes `nodes.json`, unless it is there: whose examples the run is of."""
    if self._lacks(recorded.NODES):
      self._write(recorded.NODES, text)

  def write_site(self, site: recorded.SiteModel) -> None:
    """Writes `site.json`: a site's own model is here, and no run."""
    self._write(recorded.SITE, site.to_json())

  def summary(self) -> dict[str, Any] | None:
    """The summary of a finished run, or None.

    None too of one that is to be extended, or was damaged and is to be written
    again.
    """
    if self._extends or self._digests.changed(['summary.json']):
      return None
    try:
      summary = json.loads((self.path / 'summary.json').read_text())
    except (FileNotFoundError, ValueError):
      return None
    whole = isinstance(summary, dict) and isinstance(summary.get('final'), dict)
    return summary if whole else None

  def damaged(self) -> list[str]:
    """Returns what was written and is missing, or is not as it was."""
    found = self._digests.changed()
    if 'predictions.npz' not in found and not self.has_predictions():
      found.append('predictions.npz')
    return found

  def has_predictions(self) -> bool:
    """Whether `predictions.npz` is there, and whole."""
    try:
      with zipfile.ZipFile(self.path / 'predictions.npz') as archive:
        return archive.testzip() is None
    except archives.UNREADABLE:
      return False

  def whole_rows(self) -> list[dict[str, Any]]:
    """Returns the rows of `metrics.csv` from round 0 to the first gap."""
    try:
      lines = (self.path / 'metrics.csv').read_text().splitlines(keepends=True)
    except (FileNotFoundError, UnicodeDecodeError):
      return []
    known = self._digests.lines('metrics.csv')
    # The last may have been cut, and any may have changed since.
    whole_lines = itertools.takewhile(
      lambda line: (
        line.endswith('\n')
        and (known is None or digests.line_sum(line) in known)
      ),
      lines,
    )
    table = list(csv.reader(whole_lines))
    whole: list[dict[str, Any]] = []
    for row in table[1:]:
      named = dict(zip(table[0], row))
      if len(row) != len(table[0]) or named.get('round') != str(len(whole)):
        break
      whole.append(named)
    return whole

  def resume(self, rounds: int) -> None:
    """Reads the rows up to those after `rounds` rounds back."""
    self.rows = self.whole_rows()[: rounds + 1]

  def add(self, row: Mapping[str, Any]) -> None:
    """Adds a row to `metrics.csv` and to TensorBoard."""
    self.rows.append(dict(row))
    self.write_rows()
    if self._writer is None:
      self._writer = tf.summary.create_file_writer(
        str(self.path / 'tensorboard')
      )
    with self._writer.as_default(step=int(row['round'])):
      for name, value in row.items():
        if isinstance(value, int | float) and name != 'round':
          tf.summary.write(name, float(value), metadata=_SCALAR)
    self._writer.flush()

  def write_rows(self) -> None:
    """Writes `metrics.csv` anew."""
    columns = list(dict.fromkeys(name for row in self.rows for name in row))
    # Scores first, times last: what a reader looks for.
    columns.sort(key=lambda name: name.endswith('_seconds'))
    with (
      self._replacing('metrics.csv') as path,
      path.open('w', newline='') as file,
    ):
      writer = csv.DictWriter(file, columns, restval='')
      writer.writeheader()
      writer.writerows(self.rows)

  def write_partition(
    self, counts: np.ndarray, clients: Sequence[str] = ()
  ) -> None:
    """Writes `partition.csv`: examples by client, or its name, and class.

    Unless it is there.
    """
    if not self._lacks('partition.csv'):
      return
    header = ['client', *(f'class_{c}' for c in range(counts.shape[1]))]
    names = clients or range(len(counts))
    with (
      self._replacing('partition.csv') as path,
      path.open('w', newline='') as file,
    ):
      writer = csv.writer(file, lineterminator='\n')
      writer.writerow(header)
      writer.writerows((name, *row) for name, row in zip(names, counts))

  def write_arrays(self, name: str, **arrays: Any) -> None:
    """Writes `<name>.npz`: what the plots read."""
    with self._replacing(f'{name}.npz') as path, path.open('wb') as file:
      np.savez_compressed(file, **arrays)

  def finish(
    self, summary: Mapping[str, Any], figures: Sequence[pathlib.Path] = ()
  ) -> None:
    """Writes `summary.json`: from now on the run is finished.

    Args:
      summary: of the run.
      figures: that were drawn of it, in `plots`.
    """
    self.write_rows()
    self._digests.expect({f'plots/{path.name}': path for path in figures})
    self._write('summary.json', json.dumps(summary, indent=2) + '\n')

  def _write(self, name, text):
    with self._replacing(name) as path:
      path.write_text(text)

  @contextlib.contextmanager
  def _replacing(self, name):
    temporary = self.path / f'.{name}.tmp'
    yield temporary
    with temporary.open('rb') as file:
      # On the disk before its name is: a power failure leaves either file.
      os.fsync(file.fileno())
    self._digests.expect({name: temporary})
    os.replace(temporary, self.path / name)


def _is_trace(path: pathlib.Path) -> bool:
  """What a process that was killed before it wrote a file left behind."""
  temporary = path.name.startswith('.') and path.name.endswith('.tmp')
  return temporary or path.name in (_LOCK, digests.NAME)
