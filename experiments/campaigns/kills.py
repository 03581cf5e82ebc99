"""Runs of all four papers, killed at random moments and started again.

A run is killed up to four times, then left to end: its rows and predictions
must be those of the run that nobody killed, bit for bit.
"""

import os
import pathlib
import shutil
import signal
import time

import numpy as np

from experiments.campaigns import books, forks, outcomes, presets

MOST_KILLS = 4
# How often a moment is drawn, of those below.
_MOMENTS = ('first second', 'anywhere', 'checkpoint', 'plots', 'end')
_ODDS = (0.15, 0.4, 0.2, 0.15, 0.1)


class Case:
  """Kills by preset and by the moment that was aimed at."""

  def __init__(self, folder: pathlib.Path, most: int):
    """Keeps runs below a folder; `most` kills are asked for."""
    self._folder, self._most = folder, most
    self._forks = forks.Forks('experiments.run')
    self._never: dict[str, tuple] = {}

  def close(self) -> None:
    """Ends what was started."""
    self._forks.close()

  def trial(self, number: int, rng: np.random.Generator) -> books.Trial:
    """Kills a run, lets it end and compares."""
    name = presets.NAMES[number % len(presets.NAMES)]
    wanted, seconds = self._reference(name)
    run = self._folder / f'killed-{number}'
    shutil.rmtree(run, ignore_errors=True)
    counts: dict[str, int] = {}
    for _ in range(min(self._most, rng.integers(1, MOST_KILLS + 1))):
      moment = str(rng.choice(_MOMENTS, p=_ODDS))
      if not self._killed(name, run, moment, seconds, rng):
        break
      counts[moment] = counts.get(moment, 0) + 1
    code, said = self._ended(name, run)
    broken = said if code else outcomes.difference(outcomes.of(run), wanted)
    if broken:
      return books.Trial(name, counts, f'{run}: {broken}')
    shutil.rmtree(run)
    return books.Trial(name, counts)

  def _reference(self, name):
    """The outcome and the seconds of a run that nobody killed."""
    if name not in self._never:
      run = self._folder / f'never-{name}'
      shutil.rmtree(run, ignore_errors=True)
      started = time.monotonic()
      code, said = self._ended(name, run)
      if code:
        raise RuntimeError(f'{name} could not be played: {said}')
      seconds = time.monotonic() - started
      self._never[name] = outcomes.of(run), seconds
    return self._never[name]

  def _start(self, name, run):
    arguments = [*presets.arguments(name), f'--output_dir={run}']
    return self._forks.start(arguments, self._log(run))

  def _log(self, run):
    return self._folder / f'{run.name}.log'

  def _ended(self, name, run):
    """Plays a run to its end; the last line if that was none."""
    self._start(name, run)
    code = self._forks.wait()
    lines = self._log(run).read_text().splitlines() or ['nothing was said']
    self._log(run).unlink()
    return code, f'code {code}: {lines[-1]}'

  def _killed(self, name, run, moment, seconds, rng):
    """Kills a run at a moment, unless it has ended before."""
    come = _waiting_for(moment, run, seconds, rng)
    pid = self._start(name, run)
    while not come() and forks.alive(pid):
      time.sleep(0.001)
    if forks.alive(pid):
      os.kill(pid, signal.SIGKILL)
    return self._forks.wait() == -signal.SIGKILL


def _waiting_for(moment, run, seconds, rng):
  """Returns a function that says whether the moment has come."""
  started = time.monotonic()
  if moment in ('first second', 'anywhere'):
    until = started + rng.uniform(0, 1 if moment == 'first second' else seconds)
    return lambda: time.monotonic() > until
  # A checkpoint's files, or its temporary folder; figures; what is last.
  pattern = {
    'checkpoint': f'checkpoints/state-{rng.integers(6)}*',
    'plots': 'plots/*.png',
    'end': '*predictions.npz*' if rng.integers(2) else '*summary.json*',
  }[moment]
  most, delay = int(rng.integers(1, 7)), rng.uniform(0, 0.1)
  # What lay there before is no sign.
  enough = most if moment == 'plots' else 1
  seen = {path: path.stat().st_mtime_ns for path in run.glob(pattern)}
  came: list[float] = []

  def come():
    if not came:
      new = [p for p in run.glob(pattern) if _changed(p, seen)]
      came.extend([time.monotonic()] if len(new) >= enough else [])
    return bool(came) and time.monotonic() > came[0] + delay

  return come


def _changed(path, seen):
  try:
    return seen.get(path) != path.stat().st_mtime_ns
  except OSError:
    # It was temporary.
    return True
