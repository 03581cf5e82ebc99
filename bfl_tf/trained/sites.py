"""For whom a global model fails: its scores on each site's own test share."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import types
from typing import Any, NamedTuple

import numpy as np

from bfl_tf import metrics, training
from bfl_tf import weights as weights_lib
from bfl_tf.federation import building, engine, loop
from bfl_tf.federation import client as client_lib
from bfl_tf.federation import experiment as experiment_lib
from bfl_tf.federation import state as state_lib
from bfl_tf.runs import promises
from bfl_tf.trained import model as trained_lib
from bfl_tf.trained import reopened
from bfl_tf.trained import tallies as tallies_lib

Row = dict[str, Any]
# Where a larger value is the worse one; of all others the smaller.
_WORSE_IF_LARGE = ('nll', 'ece', 'size')
# What is shown of a site's own model, beside the global one's.
_OWN_SCORES = ('accuracy', 'nll', 'ece', 'coverage', 'size')


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


@dataclasses.dataclass(frozen=True)
class Report:
  """What was found.

  Attributes:
    sites: a row a site, by column.
    classes: a row a class.
    summary: all examples together, and the mean, the worst and the standard
      deviation over sites.
    promise: that the calibration shares made; None without such shares.
    left_out: by site, why it said nothing.
  """

  sites: list[Row]
  classes: list[Row]
  summary: list[Row]
  promise: promises.Promise | None
  left_out: Mapping[str, str] = dataclasses.field(default_factory=dict)

  @classmethod
  def of(
    cls,
    trained: trained_lib.Trained,
    tallies: Mapping[str, tallies_lib.Tally],
    together: tallies_lib.Tally,
    promise: promises.Promise | None,
    client_names: Sequence[str],
    personalised: Mapping[str, Row] = types.MappingProxyType({}),
  ) -> 'Report':
    """Makes the tables.

    Args:
      trained: the run's model.
      tallies: by site, in the order of the rows.
      together: of all examples.
      promise: that the tallies' sets were made by.
      client_names: sites by client number; nothing where clients are no sites.
      personalised: by site, further columns.
    """
    drawn = _drawn(trained.config, client_names)
    sites = []
    for name, tally in tallies.items():
      row = {'site': name, **tally.row(promise)}
      if drawn:
        row['rounds_selected'] = sum(name in each for each in drawn)
      sites.append(row | personalised.get(name, {}))
    return cls(
      sites,
      [
        {'class': name, **together.class_row(number, promise)}
        for number, name in enumerate(trained.task.classes)
      ],
      [
        {'over': 'all examples', **together.row(promise)},
        *_summary(sites, drawn[-1] if drawn else ()),
      ],
      promise,
    )


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
  promise = _promise(trained, run.calibration)
  probs, y = trained.predict(test.split.x).probs, test.split.y
  names: Sequence[str] = ()
  if trained.config.clients_per_round:
    partition, _ = building.partition(trained.config, run.dataset)
    names = building.client_names(run.dataset, partition)
  return Report.of(
    trained,
    {
      name: tallies_lib.Tally.of(probs[rows], y[rows], promise)
      for name, rows in test.sites
    },
    tallies_lib.Tally.of(probs, y, promise),
    promise,
    names,
    dict(_own_scores(run, personalised)),
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
  the global posterior is the prior, as under `--flipout.update_prior`, weighed
  against the site's own examples: nobody else's are pooled with them.

  Args:
    run: whose clients are sites.
    state: after its last round.
    epochs: of each site.

  Returns:
    Each site's, as soon as it is trained.

  Raises:
    ValueError: its clients are no sites.
  """
  config = run.trained.config.replace(local_epochs=epochs, min_local_epochs=0)
  config = config.replace(early_local_epochs=0)
  if config.variant == 'flipout':
    own_prior = {'flipout.update_prior': True, 'flipout.kl_examples': 'own'}
    config = config.replace(**own_prior)
  experiment = experiment_lib.Experiment.build(config, dataset=run.dataset)
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
  models = training.in_parallel(experiment.workers, clients, train)
  return _with_promises(run, models)


def _with_promises(run, models) -> Iterator[Personalised]:
  held = run.calibration
  shares = dict(held.sites) if held else {}
  for site, model in models:
    share = held.take(shares[site]) if site in shares else None
    own = run.trained.replace(model)
    yield Personalised(site, model, _promise(own, share))


def _own_scores(run, personalised) -> Iterator[tuple[str, Row]]:
  """Yields what each site's own model scores on its test share."""
  split, tested = run.test.split, dict(run.test.sites)
  for site, model, promise in personalised:
    if site in tested:
      rows = tested[site]
      probs = run.trained.replace(model).predict(split.x[rows]).probs
      # A set that is every class for want of examples has no score.
      promise = promise and promise.informative()
      scores = tallies_lib.Tally.of(probs, split.y[rows], promise).row(promise)
      yield (
        site,
        {
          f'personalised_{name}': score
          for name, score in scores.items()
          if name.startswith(_OWN_SCORES)
        },
      )


def _promise(trained, held) -> promises.Promise | None:
  if held is None:
    return None
  probs = trained.predict(held.split.x).probs
  parts = [rows for _, rows in held.sites] or [slice(None)]
  return promises.Promise.of(
    [metrics.score_counts(probs[rows], held.split.y[rows]) for rows in parts],
    trained.num_samples(),
  )


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


def _drawn(config, names) -> list[list[str]]:
  """Which sites each round drew; nothing where all take part in all."""
  if not (config.clients_per_round and names):
    return []
  return [
    [names[client] for client in loop.sampled(config, number)]
    for number in range(config.num_rounds)
  ]
