"""What a run is made of beyond its flags, and whether it may become longer.

A flag may name a file or anybody's own code: a digest of either goes into
`flags.txt`, so that a run of other data is not taken for this one.
"""

from collections.abc import Iterator, Mapping
import hashlib
import inspect
import os
import pathlib

from bfl_tf import own
from bfl_tf.config import binding
from bfl_tf.config import config as config_lib
from bfl_tf.datasets import names

_DATA = ('dataset', 'server_dataset')
_PREFIX = '# digest of '
_BLOCK = 2**20


def digest_lines(config: config_lib.Config) -> list[str]:
  """Returns a comment for each file and each thing of anybody's own."""
  return [
    f'{_PREFIX}{flag} {digest}' for flag, digest in _digests(config).items()
  ]


def digests(text: str) -> dict[str, str]:
  """Returns the digests in a run's `flags.txt`, by `--flag=name`."""
  return dict(
    line.removeprefix(_PREFIX).rpartition(' ')[::2]
    for line in text.splitlines()
    if line.startswith(_PREFIX)
  )


def changed(config: config_lib.Config, text: str) -> list[str]:
  """Returns the flags whose file or code has changed since a run began.

  Args:
    config: of the run.
    text: of its `flags.txt`; what has no digest there is not compared.
  """
  theirs, ours = digests(text), _digests(config)
  return [flag for flag in ours if theirs.get(flag, ours[flag]) != ours[flag]]


def check(run_dir: str | os.PathLike, config: config_lib.Config) -> None:
  """Raises a ValueError if a run's file or code is another by now."""
  path = pathlib.Path(run_dir)
  others = changed(config, (path / 'flags.txt').read_text())
  if others:
    raise ValueError(has_changed(path, ', '.join(others)))


def has_changed(path: pathlib.Path, named: str) -> str:
  """Says that what a run was made of is not there any more."""
  return (
    f'{path}: what {named} names has changed since the run; bring the old file '
    'back.'
  )


def obstacle_to_more_rounds(
  config: config_lib.Config, num_rounds: int
) -> str | None:
  """Says why a run of fewer rounds is not the beginning of this one, or None.

  Args:
    config: with more rounds.
    num_rounds: of the run that there is.
  """
  if config.num_rounds < num_rounds:
    return f'the run there has {num_rounds} rounds'
  schedule = binding.make('learning_rate_schedule', config)
  totals = (num_rounds, config.num_rounds)
  for index in range(num_rounds):
    first, second = (
      schedule(config.client_learning_rate, index, total) for total in totals
    )
    if first != second:
      return (
        f'--learning_rate_schedule={config.learning_rate_schedule} is laid out '
        'over all rounds'
      )
  for method in config.chosen.methods:
    given = inspect.signature(method.thing).parameters
    if 'num_rounds' in given and method.role != 'learning_rate_schedule':
      return f'--{method.role}={method.name} is made for a number of rounds'
  return None


def _digests(config) -> Mapping[str, str]:
  found = {}
  for flag, name in _named(config):
    # The path of a file may have a colon too.
    if flag in _DATA and names.kind(name).is_file:
      digest = _of_file(pathlib.Path(name))
    else:
      digest = own.digest(name) if ':' in name else None
    if digest:
      found[f'--{flag}={name}'] = digest
  return found


def _named(config) -> Iterator[tuple[str, str]]:
  """Yields all that the config names, by flag."""
  for role in (*_DATA, *config_lib.ROLES):
    value = getattr(config, role)
    for name in value if isinstance(value, tuple) else (value,):
      yield role, name
  for method in config.chosen.methods:
    values = config.chosen.values(method)
    for declared in method.declared.values():
      if declared.table is not None:
        yield f'{method.name}.{declared.name}', values[declared.name]


def _of_file(path):
  if not path.is_file():
    return None
  digest = hashlib.sha256()
  with path.open('rb') as file:
    while block := file.read(_BLOCK):
      digest.update(block)
  return digest.hexdigest()[:16]
