"""A run's config as its `flags.txt`: a line a flag, and our version.

And what else a directory with flags may be: a site's own model.
"""

from collections.abc import Iterable
import json
import os
import pathlib
from typing import NamedTuple

from bfl_tf import version
from bfl_tf.config import config as config_lib

# The first line of a `flags.txt`.
VERSION = f'# bfl_tf {version.__version__}'
SITE = 'site.json'
NODES = 'nodes.json'
# What to do where a site's own model lacks something.
MADE_ANEW = "experiments.sites --personalise_epochs makes sites' models anew"


class SiteModel(NamedTuple):
  """Whose a model is that was trained on from a run's.

  Attributes:
    site: its name.
    personalise_epochs: that it trained.
  """

  site: str
  personalise_epochs: int

  def to_json(self) -> str:
    """Returns the text of `site.json`."""
    return json.dumps(self._asdict(), indent=2, ensure_ascii=False) + '\n'


def is_sites_own(directory: str | os.PathLike) -> bool:
  """Whether a directory holds a site's own model, and no run."""
  return (pathlib.Path(directory) / SITE).exists()


def flag_lines(config: config_lib.Config) -> list[str]:
  """Returns every flag of a run, settings of its methods too."""
  fields = [
    (name, declared.format(getattr(config, name)))
    for name, declared in config_lib.FIELDS.items()
  ]
  flags = [*fields, *config.chosen.lines()]
  return [VERSION, *(f'--{name}={text}' for name, text in flags)]


def read_config(run_dir: str | os.PathLike) -> config_lib.Config:
  """Returns the config of a run; a flag newer than the run has its default.

  Args:
    run_dir: a directory with `flags.txt`.

  Raises:
    ValueError: of another version, a flag that this one does not know, or a
      value that it does not take.
  """
  path = pathlib.Path(run_dir) / 'flags.txt'
  first, *lines = path.read_text().splitlines() or ['']
  if first != VERSION:
    raise ValueError(
      f'{path} is of another version ({first.lstrip("# ") or "none"}): choose '
      'another directory, or play the run again.'
    )
  return parse(lines)


def parse(lines: Iterable[str]) -> config_lib.Config:
  """Returns the config of `flag_lines`; comments count for nothing.

  Raises:
    ValueError: a flag or a value that this version does not know.
  """
  texts = dict(
    line.removeprefix('--').partition('=')[::2]
    for line in lines
    if not line.startswith('#')
  )
  fields = {
    name: config_lib.FIELDS[name].parse(name, text)
    for name, text in texts.items()
    if name in config_lib.FIELDS
  }
  settings = {n: t for n, t in texts.items() if n not in fields}
  return config_lib.Config(**fields, settings=settings)


def differences(ours: config_lib.Config, theirs: config_lib.Config):
  """Returns the flags in which two runs differ, but those of the machine."""
  a, b = ({*flag_lines(config)} for config in (ours, theirs))
  names = {line.removeprefix('--').partition('=')[0] for line in a ^ b}
  return sorted(names - set(config_lib.MACHINE_FIELDS))
