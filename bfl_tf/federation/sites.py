"""For whom a global model fails: its scores on each site's own test share."""

from collections.abc import Callable, Iterable, Iterator, Sequence
import dataclasses
from typing import Any

import numpy as np

from bfl_tf import metrics, training
from bfl_tf import weights as weights_lib
from bfl_tf.federation import building, engine, loop, promises, reopened
from bfl_tf.federation import client as client_lib
from bfl_tf.federation import experiment as experiment_lib
from bfl_tf.federation import state as state_lib

Row = dict[str, Any]
# A site's name and the model that is its own.
Personalised = tuple[str, weights_lib.Weights]
# Where a larger value is the worse one; of all others the smaller.
_WORSE_IF_LARGE = ('nll', 'ece', 'size')


@dataclasses.dataclass(frozen=True)
class Report:
  """What was found.

  Attributes:
    sites: a row a site, by column.
    classes: a row a class.
    summary: all examples together, and the mean, the worst and the standard
      deviation over sites.
    promise: that the calibration shares made; None without such shares.
  """

  sites: list[Row]
  classes: list[Row]
  summary: list[Row]
  promise: promises.Promise | None


def report(
  run: reopened.Reopened,
  personalised: Iterable[Personalised] = (),
) -> Report:
  """Scores the global model, and each site's own if there are such.

  Args:
    run: with its held-out shares.
    personalised: models as of `personalise`, one at a time.
  """
  trained, test = run.trained, run.test
  promise = _promise(run)
  probs = trained.predict(test.split.x).probs
  y = test.split.y
  drawn = _drawn(run)
  own = dict(_own_scores(run, personalised))
  sites = []
  for name, rows in test.sites:
    row = {'site': name, **_scores(probs[rows], y[rows], promise)}
    if drawn:
      row['rounds_selected'] = sum(name in each for each in drawn)
    sites.append(row | own.get(name, {}))
  return Report(
    sites,
    _classes(trained.task.classes, probs, y, promise),
    [
      {'over': 'all examples', **_scores(probs, y, promise)},
      *_summary(sites, drawn[-1] if drawn else ()),
    ],
    promise,
  )


def flat(found: Report) -> dict[str, float]:
  """Returns what sums a report up by one name each, for tables over runs."""
  scores: dict[str, float] = {}
  for row in found.summary:
    place = row['over'].replace(' ', '_')
    for name, value in row.items():
      of_all = place == 'all_examples'
      # Of all examples the run says most itself.
      said = of_all and not name.startswith(('coverage', 'size', 'auroc'))
      if (
        name not in ('over', 'num_examples') and value is not None and not said
      ):
        scores[name if of_all else f'{name}_{place}'] = value
  return scores


def personalise(
  run: reopened.Reopened, state: state_lib.State, epochs: int
) -> Iterator[Personalised]:
  """Trains the global model on each site's own examples, for that site alone.

  It is one more local training as of the run's clients. Of variational weights
  the global posterior is the prior, as under `--flipout.update_prior`.

  Args:
    run: whose clients are sites.
    state: after its last round.
    epochs: of each site.

  Returns:
    Each site with its model, as soon as that is trained.

  Raises:
    ValueError: its clients are no sites.
  """
  config = run.trained.config.replace(local_epochs=epochs, min_local_epochs=0)
  config = config.replace(early_local_epochs=0)
  if config.variant == 'flipout':
    config = config.replace(**{'flipout.update_prior': True})
  experiment = experiment_lib.Experiment.build(config)
  names = building.client_names(experiment.dataset, experiment.partition)
  if not names:
    raise ValueError(
      f'--partition={config.partition}: clients are no sites to personalise '
      'for; natural makes them so.'
    )
  engine.check_memories(state, experiment.method.result_like)
  broadcast = experiment.broadcast(state)
  plan = client_lib.Plan.of(config)

  def train(worker, client):
    job = client_lib.job(
      plan,
      broadcast,
      client,
      experiment.partition[client],
      state.memories.get(client),
    )
    update, _ = client_lib.train_client(worker, job, client)
    return names[client], update.model

  clients = range(len(names))
  return training.in_parallel(experiment.workers, clients, train)


def _own_scores(run, personalised) -> Iterator[tuple[str, Row]]:
  """Yields what each site's own model scores on its test share."""
  split, tested = run.test.split, dict(run.test.sites)
  for name, model in personalised:
    if name in tested:
      rows = tested[name]
      probs = run.trained.replace(model).predict(split.x[rows]).probs
      scores = _scores(probs, split.y[rows], None)
      yield (
        name,
        {f'personalised_{k}': scores[k] for k in ('accuracy', 'nll', 'ece')},
      )


def _promise(run) -> promises.Promise | None:
  held = run.calibration
  if held is None:
    return None
  probs = run.trained.predict(held.split.x).probs
  parts = [rows for _, rows in held.sites] or [slice(None)]
  return promises.Promise.of(
    [metrics.score_counts(probs[rows], held.split.y[rows]) for rows in parts],
    run.trained.num_samples(),
  )


def _scores(probs, y, promise) -> Row:
  auroc = metrics.one_against_rest(probs, y)
  row = {
    'num_examples': len(y),
    'accuracy': metrics.accuracy(probs, y),
    'balanced_accuracy': metrics.balanced_accuracy(probs, y),
    'auroc': float(np.nanmean(auroc)) if np.isfinite(auroc).any() else None,
    'nll': metrics.negative_log_likelihood(probs, y),
    'ece': metrics.expected_calibration_error(probs, y),
  }
  return row | _coverage(probs, y, promise)


def _coverage(probs, y, promise) -> Row:
  row = {}
  if promise:
    for level, sets in zip(promise.levels, promise.sets(probs), strict=True):
      row[f'coverage_{level:g}'] = metrics.coverage(sets, y)
      row[f'size_{level:g}'] = float(sets.sum(-1).mean())
  return row


def _classes(names, probs, y, promise) -> list[Row]:
  recall = metrics.per_class_recall(probs, y)
  auroc = metrics.one_against_rest(probs, y)
  rows = []
  for number, name in enumerate(names):
    of_class = y == number
    row = {'class': name, 'num_examples': int(of_class.sum())}
    if of_class.any():
      row |= {'recall': float(recall[number]), 'auroc': float(auroc[number])}
      row |= _coverage(probs[of_class], y[of_class], promise)
    rows.append(row)
  return rows


def _summary(sites: Sequence[Row], last: Sequence[str]) -> Iterator[Row]:
  """Yields mean, worst and standard deviation over sites, where there are."""
  if not sites:
    return
  # The first may have no model of its own.
  every = dict.fromkeys(name for row in sites for name in row)
  columns = [name for name in every if name not in ('site', 'num_examples')]

  def over(rows, function: Callable) -> Row:
    found: Row = {}
    for name in columns:
      values = [row[name] for row in rows if row.get(name) is not None]
      if name != 'rounds_selected' and values:
        found[name] = float(function(name, values))
    return found

  def worst(name, values):
    large = any(part in name for part in _WORSE_IF_LARGE)
    return max(values) if large else min(values)

  yield {'over': 'mean of all sites'} | over(sites, lambda _, v: np.mean(v))
  yield {'over': 'worst site'} | over(sites, worst)
  if len(sites) > 1:
    spread = over(sites, lambda _, v: np.std(v, ddof=1) if len(v) > 1 else 0.0)
    yield {'over': 'standard deviation of sites'} | spread
  if last:
    chosen = [row for row in sites if row['site'] in last]
    yield {'over': 'mean of the sites selected last'} | over(
      chosen, lambda _, v: np.mean(v)
    )


def _drawn(run) -> list[list[str]]:
  """Which sites each round drew; nothing where all take part in all."""
  config = run.trained.config
  if not config.clients_per_round:
    return []
  partition, _ = building.partition(config, run.dataset)
  names = building.client_names(run.dataset, partition)
  return [
    [names[client] for client in loop.sampled(config, number)]
    for number in range(config.num_rounds if names else 0)
  ]
