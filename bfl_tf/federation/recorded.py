"""The config that a run directory was written with, from its `flags.txt`."""

import os
import pathlib
import typing

from bfl_tf.federation import config as config_lib


def read_config(run_dir: str | os.PathLike) -> config_lib.Config:
  """Returns the config of a run; a flag newer than the run has its default.

  Args:
    run_dir: a directory with `flags.txt`.

  Raises:
    ValueError: a flag that this version does not know, or a value that it
      does not take.
  """
  types = typing.get_type_hints(config_lib.Config)
  path = pathlib.Path(run_dir) / 'flags.txt'
  fields = {}
  for line in path.read_text().splitlines():
    if line.startswith('--'):
      name, _, text = line.removeprefix('--').partition('=')
      if name not in types:
        raise ValueError(f'{path}: --{name} is unknown to this version.')
      fields[name] = _value(types[name], text)
  return config_lib.Config(**fields)


def _value(kind, text):
  if kind is bool:
    return text == 'True'
  if typing.get_origin(kind) is tuple:
    item = typing.get_args(kind)[0]
    return tuple(item(part) for part in text.split(',') if part)
  return kind(text)
