"""Personalized models: the global model, trained further by each site.

The trained posterior q_k of a site may be combined with the global posterior
q_g, by projecting q_g onto the ball of a divergence D around q_k [1]. The
projection is the barycenter of both posteriors, argmin_q (1 - w) D(q_g, q) + w
D(q_k, q), which a pooling rule returns. The weight w in [0, 1] stands for the
radius: 0 gives q_g and 1 gives q_k. In the notation of the paper, w = lambda /
(1 + lambda).

#### References

[1]: Nour Jamoussi et al. Cost-free personalization via information-geometric
     projection in Bayesian federated learning. arXiv:2509.10132.
"""

from collections.abc import Iterable, Iterator
import dataclasses
import json
import os
import pathlib
import re
from typing import NamedTuple

import numpy as np

from bfl_tf import data, files, run_files, training, weights
from bfl_tf.analysis import loading, prediction_sets, site_statistics
from bfl_tf.analysis.model import Trained
from bfl_tf.federation import client as client_lib
from bfl_tf.federation import engine, run_data
from bfl_tf.federation.experiment import Experiment
from bfl_tf.federation.plan import Plan
from bfl_tf.federation.state import State
from bfl_tf.runs import checkpoints, run_config
from bfl_tf.runs.directory import RunDirectory
from bfl_tf.server import pooling

# Rules that return a barycenter: of the squared Wasserstein-2 distance,
# KL[q, q_k], KL[q_k, q], and the squared distance of the weights.
RULES = ('wasserstein', 'llp', 'lp', 'nwa')
_WEIGHTS = np.linspace(0, 1, 11)
# Characters that some systems forbid in file names, and a leading dot.
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f%/\\:*?"<>|]|^\.')


class PersonalizedModel(NamedTuple):
  """A personalized model of a site.

  Attributes:
    fine_tuned: Weights of the site before a projection, or None.
    own_weight: Weight of `fine_tuned` in the projection, in [0, 1].
  """

  site: str
  model: weights.Weights
  sets: prediction_sets.PredictionSets | None
  fine_tuned: weights.Weights | None = None
  own_weight: float = 1.0


def train(
  run: loading.LoadedRun, state: State, epochs: int, rule: str = ''
) -> Iterator[PersonalizedModel]:
  """Trains a personalized model for each site on its own examples.

  This is one more local training, with the plan `Plan.for_one_site`. The prior
  is the global posterior. With PVI it is the cavity, which excludes the site's
  own examples.

  Args:
    rule: Pooling rule of a projection, one of `RULES`; empty for
      none. Half of a site's calibration examples choose the weight of its own
      posterior, and the others calibrate its prediction sets.
  """
  if rule and run.calibration is None:
    raise ValueError(
      '--projection needs calibration examples, which choose its weight: use a '
      'run with --calibration_fraction.'
    )
  plan = Plan.of(run.trained.config).for_one_site()
  config = plan.config.replace(predictor='', local_epochs=epochs, local_steps=0)
  plan = dataclasses.replace(plan, config=config)
  experiment = Experiment.build(config, dataset=run.dataset, plan=plan)
  names = run_data.client_names(experiment.dataset, experiment.partition)
  if not names:
    raise ValueError(
      f'--partition={config.partition}: personalized models need clients that '
      'are sites: use a run of --partition=natural.'
    )
  names_of_parts = {part.name for part in experiment.plan.locals}

  def memory_of(client):
    memory = state.memories.get(client, {})
    return {name: memory[name] for name in memory.keys() & names_of_parts}

  some = {client: memory_of(client) for client in list(state.memories)[:1]}
  engine.check_memories(
    state._replace(memories=some), experiment.plan.result_spec
  )
  broadcast = experiment.broadcast(state)

  def trained_on(worker, client):
    indices = experiment.partition[client]
    update = client_lib.train_client(
      plan, worker, broadcast, client, indices, memory_of(client)
    )
    return names[client], update.model

  clients = range(len(names))
  models = training.in_parallel(experiment.workers, clients, trained_on)
  return _with_sets(run, models, rule)


def _with_sets(run, models, rule) -> Iterator[PersonalizedModel]:
  calibration = run.calibration
  shares = dict(calibration.sites) if calibration else {}
  for site, model in models:
    rows = shares.get(site, np.zeros(0, int))
    site_model = PersonalizedModel(site, model, None)
    if rule and len(rows):
      share, rows = calibration.take(rows[::2]), rows[1::2]
      projected, weight = project(run.trained, model, rule, share)
      site_model = PersonalizedModel(site, projected, None, model, weight)
    if len(rows):
      own = run.trained.replace(site_model.model)
      share = calibration.take(rows)
      counts = run.held_counts(share, own.predict(share.x))
      site_model = site_model._replace(sets=run.sets(counts))
    yield site_model


def models_folder(run_dir: str | os.PathLike) -> pathlib.Path:
  """Returns the folder of a run's personalized models."""
  return pathlib.Path(run_dir) / run_files.SITES / 'models'


def folder(run_dir: str | os.PathLike, site: str) -> pathlib.Path:
  """Returns the folder of a site's personalized model."""
  name = _NOT_IN_NAMES.sub(lambda match: f'%{ord(match[0]):02X}', site)
  return models_folder(run_dir) / name


def save(
  run_dir: str | os.PathLike,
  trained: Trained,
  personalized: Iterable[PersonalizedModel],
  epochs: int,
) -> Iterator[PersonalizedModel]:
  """Writes personalized models and yields them, one in memory at a time.

  `bfl_tf.load`, `bfl-tf predict` and `bfl-tf export` accept a site's folder
  like the directory of a finished run.
  """
  # The scores belong to the replaced models; the command writes new ones.
  (models_folder(run_dir).parent / run_files.SCORES).unlink(missing_ok=True)
  config = trained.config
  if trained.factor is not None:
    # A fitted factor is in the summary of the run, which a site does not have.
    config = config.replace(posterior_factor=trained.factor)
  for own in personalized:
    path = folder(run_dir, own.site)
    path.mkdir(parents=True, exist_ok=True)
    # An incomplete folder, without a checkpoint, is never taken for a run.
    for name in (run_files.CHECKPOINT, run_files.CONFORMAL):
      (path / name).unlink(missing_ok=True)
    whose = {'site': own.site, 'personalize_epochs': epochs}
    if own.fine_tuned is not None:
      whose['own_weight'] = own.own_weight
    text = json.dumps(whose, indent=2, ensure_ascii=False)
    files.write_text(path / run_files.SITE, f'{text}\n')
    RunDirectory(path).keep(run_files.TASK, trained.task.to_json())
    files.write_text(path / run_files.FLAGS, run_config.text(config))
    if own.sets:
      prediction_sets.write(path, own.sets)
    checkpoints.save(State(config.num_rounds, own.model, {}, {}), path)
    yield own


def barycenter(
  rule: str,
  global_posterior: weights.Weights,
  own: weights.Weights,
  weight: float,
) -> weights.Weights:
  """Returns the barycenter of the global posterior and a site's own."""
  if weight in (0, 1):
    return own if weight else global_posterior
  weighted = [(global_posterior, 1 - weight), (own, weight)]
  return pooling.pool_models(pooling.rule_of(rule), weighted)


def project(
  trained: Trained, own: weights.Weights, rule: str, split: data.Split
) -> tuple[weights.Weights, float]:
  """Chooses the weight with the largest likelihood of held-out examples.

  Returns the barycenter and its weight, a multiple of 0.1.
  """

  def nll(weight):
    model = barycenter(rule, trained.weights, own, weight)
    prediction = trained.replace(model).predict(split.x)
    return site_statistics.of(prediction, split.y, None).row(None)['nll']

  best = float(min(_WEIGHTS, key=nll))
  return barycenter(rule, trained.weights, own, best), best
