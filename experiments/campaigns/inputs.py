"""Bad flags, files and run directories for every binary.

What a user got wrong is one line and code 2, and nothing is written; what was
right after all is code 0. Never a traceback, never a hang. A run that could be
played is only checked.
"""

import pathlib
import re
import shutil

import numpy as np

from bfl_tf import runs as runs_lib
from experiments.campaigns import books, driven, presets, wrong

_TIMEOUT = 120
# So many at a time of a binary: a process each.
_BLOCK = 100
# By binary, its flags.
_OTHERS = {
  'predict': ('run', 'input', 'output', 'num_mc_samples'),
  'compare': ('output', 'scores'),
  'sites': ('run', 'calibrate_on_test'),
  'online': ('run', 'form', 'add', 'replace', 'remove'),
  'doubt': ('run', 'near', 'far', 'num_mc_samples', 'calibrate_on_test'),
  'export': ('run', 'output', 'num_mc_samples'),
  'features': ('run', 'dataset', 'train_split', 'output'),
  'convert': ('root',),
  'reproduce': ('scale', 'claim', 'seeds', 'jobs', 'output_dir'),
  'benchmark': ('repeats', 'models', 'num_clients', 'num_workers'),
}
# What absl and TensorFlow log is no message of ours.
_LOGGED = re.compile(
  r'(?m)^[WI]\d{4} .*\n|^\s*warnings?\.warn.*\n|^.*Warning: .*\n'
)


class Case:
  """Inputs by what they are: flags, files, directories of runs."""

  def __init__(self, folder: pathlib.Path, most: int):
    """Keeps what is handed over below a folder."""
    self._folder, self._name = folder.resolve(), ''
    self._driven: driven.Driven | None = None

  def close(self) -> None:
    """Ends what was started."""
    if self._driven is not None:
      self._driven.close()

  def trial(self, number: int, rng: np.random.Generator) -> books.Trial:
    """Calls a binary with something wrong."""
    block = number // _BLOCK
    name = [*_OTHERS][block // 2 % len(_OTHERS)] if block % 2 else 'run'
    place = self._folder / 'here'
    place.mkdir(exist_ok=True)
    # The folder itself stays: the binary is called in it.
    for path in place.iterdir():
      _remove(path)
    make = _of_a_run if name == 'run' else self._of_another
    group, arguments = make(name, place, rng)
    before = _snapshot(place)
    found = self._call(name, arguments)
    changed = _snapshot(place) != before
    verdict, broken = _verdict(found, changed, place)
    where = f'trial {number}, {name} {" ".join(arguments)[:400]!r}: '
    return books.Trial(group, {verdict: 1}, broken and where + broken)

  def _call(self, name, arguments):
    # A new process now and then: what was tried stays in memory.
    if self._driven is None or self._driven.over or name != self._name:
      self.close()
      self._name = name
      self._driven = driven.Driven(
        f'experiments.{name}',
        check_only=True,
        folder=str(self._folder / 'here'),
      )
    return self._driven.call(arguments, _TIMEOUT)

  def _of_another(self, name, place, rng):
    arguments = wrong.others(_OTHERS[name], rng)
    if name in ('reproduce', 'benchmark'):
      # Else it may begin to work.
      case = 'artifact' if name == 'reproduce' else 'case'
      return name, [*arguments, f'--{case}=no/such']
    run = place / 'run'
    shutil.copytree(self._played(name), run)
    if name == 'compare':
      # Else it is the run beside it, whatever is damaged.
      flags_txt = run / 'flags.txt'
      text = flags_txt.read_text()
      flags_txt.write_text(text.replace('--seed=0', '--seed=1'))
    files = [path for path in run.rglob('*') if path.is_file()]
    if rng.random() < 0.8:
      wrong.damage(wrong.one_of(sorted(files), rng), rng)
    if name == 'compare':
      return name, [*arguments, str(run), str(self._played(name))]
    given = {'convert': [f'--root={run}'], 'online': ['--remove=1']}
    first = [f'--run={run}', *given.get(name, [])]
    if name == 'predict':
      new = place / wrong.one_of(['new.csv', 'new.npz'], rng)
      (wrong.csv if new.suffix == '.csv' else wrong.npz)(new, rng)
      first += [f'--input={new}', f'--output={place}/predictions.csv']
    if name in ('export', 'features'):
      first.append(f'--output={place}/exported.npz')
    return name, [*(first if name != 'convert' else first[1:]), *arguments]

  def _played(self, name):
    """A finished run that the binary is for."""
    kind = 'online' if name == 'online' else 'sites'
    run = self._folder / f'finished-{kind}'
    if not (run / 'summary.json').exists():
      config = presets.config(
        'fl_swag', num_rounds=1, refine='ensemble,keep'
      ) if kind == 'online' else presets.sites()  # fmt: skip
      runs_lib.Run(config, run, False).play()
    return run


def _of_a_run(unused, place, rng):
  """Flags of a run, of which some name files that are there."""
  small = ['--num_rounds=1', '--num_clients=2', f'--output_dir={place}/new']
  kind = wrong.one_of(['flags'] * 6 + ['npz', 'csv', 'csv', 'flag file'], rng)
  if kind == 'flags':
    return kind, [*small, *wrong.flags(rng)]
  path = place / {'flag file': 'some.flags'}.get(kind, f'some.{kind}')
  write = {'npz': wrong.npz, 'csv': wrong.csv}.get(kind, wrong.flag_file)
  write(path, rng)
  if kind == 'flag file':
    return kind, [*small, f'--flagfile={path}']
  role = wrong.one_of(['dataset'] * 4 + ['server_dataset'], rng)
  more = [] if kind == 'npz' else ['--ignore_columns=site']
  sites = ['--client_column=site', '--partition=natural']
  if kind == 'csv' and rng.random() < 0.4:
    more = sites
  return kind, [*small, f'--{role}={path}', *more]


def _verdict(found, changed, place):
  if found is None:
    return 'hung', f'no answer in {_TIMEOUT} s'
  code, out, errors = found
  ours = _LOGGED.sub('', errors)
  if code == 0:
    return 'was right', ''
  if code == 1 and out.startswith(f'{place}/') and not ours:
    # `convert` says of each run what it is.
    return 'refused', ''
  if code != 2:
    return 'traceback', f'code {code}: {ours[-300:]!r}'
  broken = ''
  if not ours.startswith('error: ') or ours.count('\n') != 1:
    broken = f'says {ours[:300]!r}'
  elif changed:
    broken = f'was refused ({ours[:100]!r}), and something was written'
  return 'refused', broken


def _remove(path):
  shutil.rmtree(path) if path.is_dir() else path.unlink()


def _snapshot(folder):
  return {
    (path, path.is_dir() or path.read_bytes())
    for path in folder.rglob('*')
    # A lock that was there for a moment.
    if path.name != '.lock'
  }
