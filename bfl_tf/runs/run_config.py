"""The stored config of a run: its file `flags.txt`, which identifies it.

It contains the version, one line per flag, and digests of data files and user
code that flags name. Runs with other data or code are therefore different runs.
A run may get more rounds.
"""

from collections.abc import Iterable
import hashlib
import inspect
import os
import pathlib
from typing import Any

from bfl_tf import files, run_files, training, version
from bfl_tf.config.config import Config, FIELDS, MACHINE_FIELDS, ROLES
from bfl_tf.data import names
from bfl_tf.declare import user_code as own

# First line of a `flags.txt`. Readers compare the format only.
_PROGRAM = '# bfl_tf '
VERSION = f'{_PROGRAM}{version.__version__}, format {version.FORMAT}'
_DATA = ('dataset', 'server_dataset')
_DIGEST = '# digest of '
_METHOD = '# method '
# Omitted, so that files and digests of runs without this flag stay the same.
_OMITTED = '--data_seed=-1'


def text(config: Config) -> str:
  """Returns the text of a run's `flags.txt`."""
  first, *flags = flag_lines(config)
  comments = [f'{_METHOD}{config.method}'] if config.method else []
  comments += [f'{_DIGEST}{flag} {d}' for flag, d in _digests(config).items()]
  return '\n'.join([first, *comments, *flags]) + '\n'


def flag_lines(config: Config) -> list[str]:
  """Returns the version and all flags, including settings of the methods."""
  flags = settings(config).items()
  lines = [f'--{name}={text}' for name, text in flags]
  return [VERSION, *(line for line in lines if line != _OMITTED)]


def settings(config: Config) -> dict[str, str]:
  """Returns the text of all flags, including settings of the methods."""
  fields = {
    name: spec.format(config.get(name)) for name, spec in FIELDS.items()
  }
  return {**fields, **dict(config.selection.lines())}


def read_config(run_dir: str | os.PathLike) -> Config:
  """Returns the config of a run."""
  path = pathlib.Path(run_dir) / run_files.FLAGS
  with files.reading(path):
    first, *lines = path.read_text('utf-8').splitlines()
    if not first.startswith(_PROGRAM):
      raise ValueError('The file does not begin with a version.')
  if first.partition(', format ')[2] != str(version.FORMAT):
    header = first.removeprefix('# ')
    raise ValueError(
      f'{path} has another format ({header}): start the run again.'
    )
  try:
    return parse(lines)
  except ValueError as error:
    raise ValueError(f'{path} cannot be read: {error}') from error


def parse(lines: Iterable[str]) -> Config:
  """Returns the config of the lines of `text`, or of `flag_lines`."""
  texts, label = {}, ''
  for line in lines:
    if line.startswith(_METHOD):
      label = line.removeprefix(_METHOD)
    elif not line.startswith('#'):
      name, _, text = line.removeprefix('--').partition('=')
      texts[name] = text
  return Config.of(texts, typed=texts).labelled(label)


def identity(config: Config) -> dict[str, str]:
  """Returns the flags that identify a run: all but those of the machine."""
  own = MACHINE_FIELDS
  return {k: text for k, text in settings(config).items() if k not in own}


def digest(run_dir: str | os.PathLike) -> str:
  """Returns a digest of the identifying flags of a run.

  A run may get more rounds, so their number does not count. A folder of a run,
  such as `online`, has the digest of the run.
  """
  path = pathlib.Path(run_dir) / run_files.FLAGS
  if not path.exists():
    path = path.absolute().parents[1] / run_files.FLAGS
  ignored = ('num_rounds', *MACHINE_FIELDS)
  lines = path.read_text('utf-8').splitlines() if path.exists() else []
  hasher = hashlib.blake2b(digest_size=16)
  for line in lines:
    name = line.removeprefix('--').partition('=')[0]
    if line.startswith('--') and name not in ignored:
      hasher.update(f'{line}\n'.encode())
  return hasher.hexdigest()


def differences(ours: Config, theirs: Config) -> list[str]:
  """Returns the names of the identifying flags that differ."""
  differ = identity(ours).items() ^ identity(theirs).items()
  return sorted({name for name, _ in differ})


def digests(run_dir: str | os.PathLike) -> dict[str, str]:
  """Returns the digests in a run's `flags.txt`, by `--flag=name`."""
  text = (pathlib.Path(run_dir) / run_files.FLAGS).read_text('utf-8')
  return dict(
    line.removeprefix(_DIGEST).rpartition(' ')[::2]
    for line in text.splitlines()
    if line.startswith(_DIGEST)
  )


def changed(run_dir: str | os.PathLike, config: Config) -> list[str]:
  """Returns the flags whose file or code has changed since the run's start."""
  theirs, ours = digests(run_dir), _digests(config)
  return [flag for flag in ours if theirs.get(flag, ours[flag]) != ours[flag]]


def check_unchanged(run_dir: str | os.PathLike, config: Config) -> None:
  """Raises a ValueError if a file or code of the run has changed."""
  others = changed(run_dir, config)
  if others:
    raise ValueError(
      f'{run_dir}: the files of {", ".join(others)} have changed since the '
      'run: restore them.'
    )


def obstacle_to_more_rounds(config: Config, num_rounds: int) -> str | None:
  """Returns why `config` cannot extend a run of `num_rounds`, or None."""
  if config.num_rounds < num_rounds:
    return f'the run there has {num_rounds} rounds'
  schedule: Any = config.make('schedule', training.Schedule)

  def rates(of_run):
    """Returns the rates of rounds with three epochs of three steps."""
    return [
      (
        schedule.rate(config.client_learning_rate, index, of_run),
        *schedule.factors(9, 3, index, of_run),
      )
      for index in range(num_rounds)
    ]

  for method in config.selection.methods:
    depends = 'num_rounds' in inspect.signature(method.factory).parameters
    if method.role == 'schedule':
      depends = rates(num_rounds) != rates(config.num_rounds)
    if depends:
      return f'--{method.role}={method.name} depends on the number of rounds'
  return None


def _digests(config) -> dict[str, str]:
  """Returns the digests of the files and the code that flags name."""
  named = [('method', config.requested_method)]
  for role in (*_DATA, *ROLES):
    value = config.get(role)
    values = value if isinstance(value, tuple) else (value,)
    named += [(role, name) for name in values]
  named += [
    (method.key(name), method.values[name])
    for method in config.selection.methods
    for name, spec in method.specs.items()
    if spec.table is not None
  ]
  digest_by_flag = {}
  for flag, name in named:
    # Data files come first, because their path may also contain a colon.
    digest = None
    if flag in _DATA and names.kind(name) in names.FILES:
      path = pathlib.Path(name)
      digest = own.digest_of(path) if path.is_file() else None
    elif ':' in name:
      digest = own.digest(name)
    if digest:
      digest_by_flag[f'--{flag}={name}'] = digest
  return digest_by_flag
