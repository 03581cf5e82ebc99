"""Many rounds with fifty clients: memory, files and threads stay as they are.

Each paper's preset is played at once, and again in five parts, each ended by
SIGTERM and gone on with. Both must be the same bits.
"""

import csv
import os
import pathlib
import shutil
import signal
import time

import numpy as np

from experiments.campaigns import books, forks, outcomes, presets

_PARTS = 5
# Fifty clients have few examples: steps enough for three columns.
_MORE = {'fl_swag': {'local_epochs': 12}}
# Rounds after which memory is to stay within a fiftieth.
_WARM_UP = 50
_MOST_GROWTH = 1.02


class Case:
  """Rounds by preset."""

  def __init__(self, folder: pathlib.Path, most: int):
    """Keeps runs below a folder; a preset has a quarter of `most` rounds."""
    self._folder = folder
    self._rounds = max(2 * _PARTS, most // len(presets.NAMES))
    self._forks = forks.Forks('experiments.run')

  def close(self) -> None:
    """Ends what was started."""
    self._forks.close()

  def trial(self, number: int, rng: np.random.Generator) -> books.Trial:
    """Plays a preset at once and in parts."""
    name = presets.NAMES[number % len(presets.NAMES)]
    once, parts = (
      self._folder / f'{kind}-{name}' for kind in ('once', 'parts')
    )
    for run in (once, parts):
      shutil.rmtree(run, ignore_errors=True)
    seen = self._watched(name, once)
    for part in range(1, _PARTS):
      self._part(name, parts, part * self._rounds // _PARTS)
    self._part(name, parts, None)
    problems = [*self._growth(once, seen)]
    differ = outcomes.difference(outcomes.of(parts), outcomes.of(once))
    if differ:
      problems.append(f'{differ} of {_PARTS} parts differ')
    broken = f'{name}: {"; ".join(problems)}' if problems else ''
    return books.Trial(
      name, {'rounds': self._rounds}, broken, self._note(name, once, seen)
    )

  def _start(self, name, run):
    flags = presets.arguments(
      name,
      num_clients=50,
      num_rounds=self._rounds,
      eval_every=5,
      batch_size=32,
      **_MORE.get(name, {}),
    )
    return self._forks.start([*flags, f'--output_dir={run}'], self._log(run))

  def _log(self, run):
    return self._folder / f'{run.name}.log'

  def _watched(self, name, run):
    """Plays a run; open files and threads by the rounds there were."""
    pid, seen = self._start(name, run), []
    while forks.alive(pid):
      try:
        files, threads = (
          len(os.listdir(f'/proc/{pid}/{what}')) for what in ('fd', 'task')
        )
        seen.append((len(_memory(run)), files, threads))
      except OSError:
        # It ended meanwhile.
        pass
      time.sleep(0.2)
    self._check(self._forks.wait(), run)
    return seen

  def _part(self, name, run, until):
    """Goes on until there are so many rounds, or to the end."""
    # The part before may have gone further; who only begins knows no SIGTERM.
    least = max(until or 0, len(_memory(run)) + 1)
    pid = self._start(name, run)
    while until is not None and len(_memory(run)) < least and forks.alive(pid):
      time.sleep(0.01)
    if until is not None and forks.alive(pid):
      os.kill(pid, signal.SIGTERM)
    self._check(self._forks.wait(), run, 0 if until is None else 143)

  def _check(self, code, run, wanted=0):
    if code not in (0, wanted):
      raise RuntimeError(f'code {code}: {self._log(run).read_text()[-300:]}')

  def _growth(self, run, seen):
    memory = _memory(run)
    if self._rounds > _WARM_UP and memory[-1] > _MOST_GROWTH * memory[_WARM_UP]:
      yield f'memory grew from {memory[_WARM_UP]} to {memory[-1]} MiB'
    for what, before, after in self._left_open(seen):
      if after > before:
        yield f'{what} grew from {before} to {after}'

  def _left_open(self, seen):
    """Of files and threads, how many there were at least, early and late."""
    rounds = self._rounds
    early = [s for s in seen if 0.1 * rounds <= s[0] <= 0.4 * rounds]
    late = [s for s in seen if 0.7 * rounds <= s[0]]
    for what, place in (('files', 1), ('threads', 2)):
      if early and late:
        yield what, *(min(s[place] for s in some) for some in (early, late))

  def _note(self, name, run, seen):
    memory, rounds = _memory(run), self._rounds
    first = min(_WARM_UP, rounds // 2)
    opened = ', '.join(
      f'{before} and {after} {what}'
      for what, before, after in self._left_open(seen)
    )
    return (
      f'{name}: peak memory {memory[first]} MiB after {first} rounds, '
      f'{memory[-1]} after {rounds}; early and late {opened or "not seen"} open'
    )


def _memory(run):
  """The peak memory at each whole row."""
  try:
    with open(run / 'metrics.csv', newline='') as file:
      return [float(row['peak_memory_mib']) for row in csv.DictReader(file)]
  except FileNotFoundError:
    return []
