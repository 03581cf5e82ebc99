"""Every file of a run cut, emptied, changed in one byte and removed.

Then the run is started again. It must come to the same bits, with the damaged
file as it was, or say in one line which file it is.
"""

import contextlib
import io
import itertools
import pathlib
import shutil
from unittest import mock

from absl import logging
import numpy as np

from bfl_tf import runs as runs_lib
from bfl_tf.federation import loop
from bfl_tf.runs import checkpoints
from experiments.campaigns import books, outcomes, presets

_HOW = ('cut', 'emptied', 'flipped', 'removed')
_STATES = ('finished', 'interrupted')
# Beside a run that was played: it is whole.
_OURS = '.whole'
# Written for another program, and never read.
_NOT_READ = ('tensorboard', '.lock', _OURS)


# With times in them, or of other files: their bytes say nothing.
_BY_OUTCOME = ('metrics.csv', 'summary.json', '.digests')


class _Stopped(BaseException):
  """As good as a signal: nothing handles it."""


class Case:
  """Damages by preset, state of the run and what was done."""

  def __init__(self, folder: pathlib.Path, most: int):
    """Keeps runs below a folder."""
    self._folder = folder
    self._built: dict = {}
    self._trials: dict[str, list[tuple[str, str, str]]] = {}

  def close(self) -> None:
    """Nothing was started."""

  def trial(self, number: int, rng: np.random.Generator) -> books.Trial:
    """Damages a file of a copy, starts it again and looks."""
    name, state, file, how = self._drawn(number)
    # Under its own name, which figures have for a title.
    run = self._folder / 'damaged' / name
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(self._run(name, state), run)
    _damage(run / file, how, rng)
    code, said = self._played(presets.config(name), run)
    verdict, broken = self._verdict(name, state, run, file, code, said)
    where = f'{name}, {state}, {file} {how}: '
    return books.Trial(
      f'{state}, {how}', {verdict: 1}, broken and where + broken
    )

  def _drawn(self, number):
    """One preset after the other, and of each all that can be damaged."""
    while True:
      for name in presets.NAMES:
        if number < len(self._of(name)):
          return name, *self._of(name)[number]
        number -= len(self._of(name))

  def _of(self, name):
    """All damages of a preset, in an order that begins with every kind."""
    if name not in self._trials:
      found = [
        (state, file, how)
        for state in _STATES
        for file, how in itertools.product(self._files(name, state), _HOW)
      ]
      np.random.default_rng(0).shuffle(found)
      self._trials[name] = found
    return self._trials[name]

  def _verdict(self, name, state, run, file, code, said):
    named = pathlib.Path(file).name.lstrip('.').split('.')[0] in said
    if code not in (0, 2):
      return 'stopped', f'code {code}: {said}'
    if code:
      broken = '' if named and said.count('\n') == 1 else f'says {said!r}'
      return 'refused by name', broken
    differ = outcomes.difference(
      outcomes.of(run), outcomes.of(self._run(name, 'finished'))
    )
    if not differ and state == 'finished' and _is_spare(run / file):
      return 'not needed', ''
    whole = self._run(name, 'finished') / file
    if not differ and _is_whole(run / file, whole):
      return 'same bits', ''
    broken = (
      '' if named else f'{differ or file} is not as it was; says {said!r}'
    )
    return 'left and named', broken

  def _files(self, name, state):
    run = self._run(name, state)
    found = [str(p.relative_to(run)) for p in run.rglob('*') if p.is_file()]
    return sorted(f for f in found if not f.startswith(_NOT_READ))

  def _run(self, name, state):
    """A run that was played, or stopped after three rounds."""
    run = self._folder / state / name
    if not (run / _OURS).exists():
      shutil.rmtree(run, ignore_errors=True)
      at = _at_call(loop.federated_round, 4 if state == 'interrupted' else 99)
      with mock.patch.object(loop, 'federated_round', at):
        code, said = self._played(presets.config(name), run)
      if code:
        raise RuntimeError(f'{name} could not be played: {said}')
      (run / _OURS).touch()
    return run

  def _played(self, config, run):
    """Plays a run as the binary does; the code, and all that was said."""
    said = io.StringIO()
    handler = logging.logging.StreamHandler(said)
    logging.get_absl_logger().addHandler(handler)
    try:
      with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        runs_lib.Run(config, run, False, self._built).play()
      return 0, said.getvalue()
    except _Stopped:
      return 0, said.getvalue()
    except ValueError as error:
      return 2, f'{error}\n'
    except Exception as error:
      return 1, f'{type(error).__name__}: {error}\n'
    finally:
      logging.get_absl_logger().removeHandler(handler)


def _at_call(function, number):
  """Stops at a call."""
  calls = []

  def stopping(*args, **kwargs):
    calls.append(1)
    if len(calls) == number:
      raise _Stopped
    return function(*args, **kwargs)

  return stopping


def _damage(path, how, rng):
  data = bytearray(path.read_bytes())
  if how == 'removed':
    path.unlink()
  elif how == 'emptied' or not data:
    path.write_bytes(b'')
  elif how == 'cut':
    path.write_bytes(data[: int(rng.integers(len(data)))])
  else:
    data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    path.write_bytes(data)


def _is_spare(path):
  """Whether it is of the checkpoint before a finished run's last."""
  is_last = path.name.startswith(f'state-{presets.NUM_ROUNDS}.')
  return path.parent.name == 'checkpoints' and not is_last


def _is_whole(path, like):
  """Whether a file is as it was; what has times in it is known by its rows."""
  if path.name in _BY_OUTCOME or not like.exists():
    return True
  if path.parent.name == 'checkpoints':
    state = checkpoints.restore(path.parent)
    return state is not None and state.round == presets.NUM_ROUNDS
  return path.exists() and path.read_bytes() == like.read_bytes()
