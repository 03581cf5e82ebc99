"""Sites' own models: the global one, trained on by each site and kept."""

from collections.abc import Iterable, Iterator
import json
import os
import pathlib
import re
from typing import NamedTuple

from bfl_tf import files, run_files, training
from bfl_tf import weights as weights_lib
from bfl_tf.federation import client as client_lib
from bfl_tf.federation import data as data_lib
from bfl_tf.federation import engine
from bfl_tf.federation import experiment as experiment_lib
from bfl_tf.federation import plan as plan_lib
from bfl_tf.federation import state as state_lib
from bfl_tf.runs import checkpoints
from bfl_tf.runs import directory as directory_lib
from bfl_tf.trained import model as trained_lib
from bfl_tf.trained import promises, reopened

# What the name of a file may not hold somewhere, and what would hide it.
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f%/\\:*?"<>|]|^\.')


class Personalised(NamedTuple):
  """A site's own model.

  Attributes:
    site: its name.
    model: that it trained for itself.
    promise: that its own calibration share made with it, which holds for this
      site; None without such a share.
  """

  site: str
  model: weights_lib.Weights
  promise: promises.Promise | None


def train(
  run: reopened.Reopened, state: state_lib.State, epochs: int
) -> Iterator[Personalised]:
  """Trains the global model on each site's own examples, for that site alone.

  It is one more local training like that of the run's clients, by
  `Plan.for_one_site`: the prior is the global posterior, or under PVI the
  cavity, which does not contain the site's examples yet.

  Args:
    run: whose clients are sites.
    state: after its last round.
    epochs: of each site.

  Returns:
    Each site's, as soon as it is trained.

  Raises:
    ValueError: its clients are no sites.
  """
  config = run.trained.config.replace(
    predictor='',
    local_epochs=epochs,
    min_local_epochs=0,
    early_local_epochs=0,
  )
  plan = plan_lib.Plan.of(config).for_one_site()
  experiment = experiment_lib.Experiment.build(
    config, dataset=run.dataset, plan=plan
  )
  names = data_lib.client_names(experiment.dataset, experiment.partition)
  if not names:
    raise ValueError(
      f'--partition={config.partition}: clients are no sites to personalise '
      'for; natural makes them so.'
    )
  kept = {part.name for part in experiment.method.parts}
  memories = {
    client: {name: memory[name] for name in memory.keys() & kept}
    for client, memory in state.memories.items()
  }
  state = state._replace(memories=memories)
  engine.check_memories(state, experiment.method.result_spec)
  broadcast = experiment.broadcast(state)

  def trained_on(worker, client):
    indices = experiment.partition[client]
    memory = state.memories.get(client)
    update = client_lib.train_client(
      plan, worker, broadcast, client, indices, memory
    )
    return names[client], update.model

  clients = range(len(names))
  models = training.in_parallel(experiment.workers, clients, trained_on)
  return _with_promises(run, models)


def _with_promises(run, models) -> Iterator[Personalised]:
  held = run.calibration
  shares = dict(held.sites) if held else {}
  for site, model in models:
    share = held.take(shares[site]) if site in shares else None
    own = run.trained.replace(model)
    promise = share and reopened.promise_of(own, share, run.score)
    yield Personalised(site, model, promise)


def home(run_dir: str | os.PathLike) -> pathlib.Path:
  """Returns where a run's sites have their models."""
  return pathlib.Path(run_dir) / run_files.SITES / 'models'


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
  personalised: Iterable[Personalised],
  epochs: int,
) -> Iterator[Personalised]:
  """Passes models on, and keeps them, one in memory at a time.

  `bfl_tf.load`, and so bfl-tf predict and export, take a site's folder as
  that of a finished run.

  Args:
    run_dir: of the global model.
    trained: the run.
    personalised: as of `train`.
    epochs: of each site, to be written down.

  Returns:
    The same models in their order.

  Raises:
    ValueError: one cannot be written; those before it are.
  """
  # Scores of the models that were here; the same command makes them anew.
  (home(run_dir).parent / run_files.SCORES).unlink(missing_ok=True)
  try:
    for own in personalised:
      _write(folder(run_dir, own.site), trained, own, epochs)
      yield own
  except OSError as error:
    raise ValueError(f"sites' models cannot be kept: {error}.") from error


def _write(path, trained, own, epochs):
  """Writes a folder that holds no run until its last file is there."""
  path.mkdir(parents=True, exist_ok=True)
  for name in (run_files.FLAGS, run_files.CONFORMAL):
    (path / name).unlink(missing_ok=True)
  whose = {'site': own.site, 'personalise_epochs': epochs}
  text = json.dumps(whose, indent=2, ensure_ascii=False)
  files.write_text(path / run_files.SITE, f'{text}\n')
  directory = directory_lib.RunDirectory(path)
  directory.write_task(trained.task)
  state = state_lib.State(trained.config.num_rounds, own.model, {}, {})
  checkpoints.save(state, path)
  if own.promise:
    promises.write(path, own.promise)
  directory.write_flags(trained.config)
