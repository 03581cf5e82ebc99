"""Sites' own models, each kept as a finished run: to predict with."""

from collections.abc import Iterable, Iterator
import os
import pathlib
import shutil
import tempfile
import urllib.parse

from bfl_tf.federation import checkpoints, records, sites
from bfl_tf.federation import state as state_lib
from bfl_tf.federation import trained as trained_lib


def home(run_dir: str | os.PathLike) -> pathlib.Path:
  """Returns where a run's sites have their models."""
  return pathlib.Path(run_dir) / 'sites' / 'models'


def folder(run_dir: str | os.PathLike, site: str) -> pathlib.Path:
  """Returns where a site's own model is kept.

  Args:
    run_dir: of the global model.
    site: its name; what a file's name may not hold is percent-encoded.
  """
  name = urllib.parse.quote(site, safe=' ')
  # A dot in front hides a file, or is a folder above.
  name = f'%2E{name[1:]}' if name.startswith('.') else name
  return home(run_dir) / name


def kept(
  run_dir: str | os.PathLike,
  trained: trained_lib.Trained,
  personalised: Iterable[sites.Personalised],
) -> Iterator[sites.Personalised]:
  """Passes models on, and keeps them, one in memory at a time.

  A site's folder is a finished run that has the global run's flags, task and
  rows and the site's model: `bfl_tf.load`, experiments.predict, export and
  doubt take it. All of them take the place of those before after the last.

  Args:
    run_dir: of the global model.
    trained: the run.
    personalised: as of `sites.personalise`.

  Returns:
    The same models in their order.
  """
  place = home(run_dir)
  place.parent.mkdir(exist_ok=True)
  rows = records.RunDirectory(run_dir).whole_rows()
  with tempfile.TemporaryDirectory(prefix='.', dir=place.parent) as scratch:
    whole = pathlib.Path(scratch) / place.name
    whole.mkdir()
    for site, model in personalised:
      directory = records.RunDirectory(whole / folder(run_dir, site).name)
      directory.rows = rows
      _write(directory, trained, site, model)
      yield site, model
    shutil.rmtree(place, ignore_errors=True)
    os.replace(whole, place)


def _write(directory, trained, site, model):
  config = trained.config
  directory.path.mkdir()
  directory.write_flags(config)
  directory.write_task(trained.task)
  state = state_lib.State(config.num_rounds, model, {}, {})
  checkpoints.save(state, directory.checkpoints)
  # Nobody has scored it there.
  directory.finish({'site': site, 'final': {}})
