"""Sites' own models, kept to predict with."""

from collections.abc import Iterable, Iterator
import os
import pathlib
import re
import shutil

from bfl_tf.federation import state as state_lib
from bfl_tf.runs import checkpoints, promises
from bfl_tf.runs import directory as directory_lib
from bfl_tf.trained import model as trained_lib
from bfl_tf.trained import sites

# What the name of a file may not hold somewhere, and what would hide it.
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f%/\\:*?"<>|]|^\.')


def home(run_dir: str | os.PathLike) -> pathlib.Path:
  """Returns where a run's sites have their models."""
  return pathlib.Path(run_dir) / 'sites' / 'models'


def folder(run_dir: str | os.PathLike, site: str) -> pathlib.Path:
  """Returns where a site's own model is kept.

  Args:
    run_dir: of the global model.
    site: its name; what the name of a file may not hold is percent-encoded.
  """
  return home(run_dir) / _NOT_IN_NAMES.sub(
    lambda found: f'%{ord(found[0]):02X}', site
  )


def kept(
  run_dir: str | os.PathLike,
  trained: trained_lib.Trained,
  personalised: Iterable[sites.Personalised],
  epochs: int,
) -> Iterator[sites.Personalised]:
  """Passes models on, and keeps them, one in memory at a time.

  `bfl_tf.load`, and so experiments.predict and export, take a site's folder as
  that of a finished run, which it is not: it has no rounds of its own, and
  whatever plays or scores runs refuses it. When the last is written all of them
  take the place of those before.

  Args:
    run_dir: of the global model.
    trained: the run.
    personalised: as of `sites.personalise`.
    epochs: of each site, to be written down.

  Returns:
    The same models in their order.

  Raises:
    ValueError: one cannot be written; those before are as they were.
  """
  scratch = pathlib.Path(run_dir) / '.site_models.tmp'
  # Of a process that was killed.
  shutil.rmtree(scratch, ignore_errors=True)
  try:
    for own in personalised:
      path = scratch / 'new' / folder(run_dir, own.site).name
      _write(path, trained, own, epochs)
      yield own
    _replace(home(run_dir), scratch)
  except OSError as error:
    raise ValueError(f"sites' models cannot be kept: {error}.") from error
  finally:
    shutil.rmtree(scratch, ignore_errors=True)


def _write(path, trained, own, epochs):
  path.mkdir(parents=True)
  directory = directory_lib.RunDirectory(path)
  directory.write_flags(trained.config)
  directory.write_task(trained.task)
  directory.write_site(directory_lib.SiteModel(own.site, epochs))
  state = state_lib.State(trained.config.num_rounds, own.model, {}, {})
  checkpoints.save(state, directory.checkpoints)
  if own.promise:
    promises.write(path, own.promise)


def _replace(place, scratch):
  place.parent.mkdir(exist_ok=True)
  if place.exists():
    os.replace(place, scratch / 'old')
  os.replace(scratch / 'new', place)
