"""Scores of a run's model on the test examples of each site."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import itertools
import types
from typing import Any

from bfl_tf.analysis import (
  coefficients,
  loading,
  personalized,
  prediction_sets,
  site_statistics,
)
from bfl_tf.analysis import risk as risk_lib
from bfl_tf.analysis.model import take, Trained
from bfl_tf.data import encoding
from bfl_tf.federation import stopping

Row = dict[str, Any]
_NO_SITES: Mapping[str, Any] = types.MappingProxyType({})
# Scores for which larger is worse; for all others, smaller is worse.
_WORSE_IF_LARGE = ('nll', 'ece', 'size', 'rmse', 'crps', 'pit_error', 'width')
# Reported scores of personalized models.
_OWN_SCORES = (
  'accuracy', 'rmse', 'nll', 'crps', 'ece', 'coverage', 'size', 'width',
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Report:
  """Scores by site, by class and over all sites.

  Attributes:
    summary: Scores of all examples together, and the mean, the worst and the
      standard deviation over sites.
    of_personal: Whether all scores are those of personal models.
    curves: Test examples by the log odds of the event, after recalibration, of
      each site; the key `''` is for all.
  """

  sites: list[Row]
  classes: list[Row]
  summary: list[Row]
  together: site_statistics.Statistics = dataclasses.field(compare=False)
  sets: prediction_sets.PredictionSets | None
  rejected: Mapping[str, str] = dataclasses.field(default_factory=dict)
  of_personal: bool = False
  risk: risk_lib.Risk | None = None
  risks: list[Row] = dataclasses.field(default_factory=list)
  by_set: list[Row] = dataclasses.field(default_factory=list)
  curves: Mapping[str, risk_lib.Risks] = dataclasses.field(
    default_factory=dict, compare=False
  )
  event: str = ''
  coefficients: Sequence[Row] = ()

  @classmethod
  def of(
    cls,
    trained: Trained,
    statistics: Mapping[str, site_statistics.Statistics],
    together: site_statistics.Statistics,
    sets: prediction_sets.PredictionSets | None,
    personalized: Mapping[str, Row] = _NO_SITES,
    counts: Mapping[str, site_statistics.HeldCounts] = _NO_SITES,
    choice: risk_lib.Risk = risk_lib.DEFAULT,
    rounds: Mapping[str, tuple[int, int]] = _NO_SITES,
    missing: Mapping[str, float] = _NO_SITES,
  ) -> 'Report':
    """Builds the tables."""
    sites = []
    for name, of_site in statistics.items():
      row = {'site': name, **of_site.row(sets)}
      if sets and sets.by == 'site':
        row['num_calibration'] = sets.num_examples.get(name, 0)
      sites.append(row | personalized.get(name, {}))
    classes = []
    if isinstance(together, site_statistics.SiteStatistics):
      classes = [
        {'class': name, **together.class_row(number, sets)}
        for number, name in enumerate(trained.task.classes)
      ]
    whole = {'over': 'all examples', **together.row(sets)}
    table = [whole, *_summary(sites)]
    report = cls(sites, classes, table, together, sets, {}, trained.needs_site)
    if len(classes) != 2:
      return report
    names = trained.task.classes
    every: Any = {'': together, **statistics}
    fitted_risk = choice.fitted(
      names, {k: v.risk for k, v in counts.items()}, every[''].risk
    )
    facts = _merged(
      (
        (site, {'updates': accepted, 'updates_requested': requested})
        for site, (accepted, requested) in rounds.items()
      ),
      ((site, {'missing': fraction}) for site, fraction in missing.items()),
    )
    event = names.index(fitted_risk.event)
    by_set = [
      {'site': site or risk_lib.ALL, **row}
      for site, of_site in (every.items() if sets else ())
      for row in of_site.set_rows(sets, event, names)
    ]
    raw = {k: risk_lib.Risks.of(v.risk, event) for k, v in every.items()}
    return dataclasses.replace(
      report,
      risk=fitted_risk,
      risks=fitted_risk.rows(raw, facts),
      by_set=by_set,
      curves={k: v.recalibrated(fitted_risk.maps['']) for k, v in raw.items()},
      event=trained.named(fitted_risk.event),
      coefficients=coefficients.table(trained),
    )

  @property
  def has_few_events(self) -> bool:
    """Whether a class has fewer than `risk.MIN_EVENTS` test examples."""
    sizes = [row['num_examples'] for row in self.classes]
    return min(sizes) < risk_lib.MIN_EVENTS

  def poorly_covered(self, level: float) -> list[Row]:
    """Returns the classes whose coverage is surely below `level`."""
    name = f'coverage_{level:g}'
    return [
      row
      for row in self.classes
      if name in row and interval(row[name], row['num_examples'])[1] < level
    ]


def interval(share: float, total: int) -> tuple[float, float]:
  """Returns the 95 % Wilson interval of a fraction of `total` cases."""
  from scipy import stats

  test = stats.binomtest(round(share * total), total)
  return test.proportion_ci(method='wilson')


def report(
  run: loading.LoadedRun,
  personalized: Iterable[personalized.PersonalizedModel] = (),
  calibrated: bool = False,
  choice: risk_lib.Risk = risk_lib.DEFAULT,
) -> Report:
  """Scores the global model, and personalized models if there are any.

  Args:
    calibrated: Whether to score the global model with the fitted temperature.
      Prediction sets are then left out: their guarantee needs probabilities
      that do not depend on the calibration examples.
  """
  trained, test, calibration = run.trained, run.test, run.calibration
  prediction, y, sets = run.predict(test), test.y, None
  counts = run.held_counts(calibration) if calibration else {}
  if calibrated:
    prediction = trained.calibrated(prediction)
  elif calibration:
    sets = run.sets(counts)
  every = run.dataset.calibration
  if every and every is not calibration and trained.task.num_classes == 2:
    # A recalibration may also use the examples that chose the posterior factor,
    # because sets have probabilities without it.
    counts = run.held_counts(every)
  statistics = {
    name: site_statistics.of(
      take(prediction, rows), y[rows], sets and sets.at(name)
    )
    for name, rows in test.sites
  }
  together: Any = site_statistics.of(prediction, y, sets)
  if sets and sets.by == 'site' and statistics:
    # The area under a curve is not a sum over sites.
    exact = {} if trained.task.is_numeric else {'auroc': together.auroc}
    together = site_statistics.merged(statistics)._replace(**exact)
  known, train = run.dataset.features, run.dataset.train
  missing = {
    site: encoding.missing_fraction(known, train.x[rows].mean(0))
    for site, rows in (train.sites if known else ())
  }
  return Report.of(
    trained,
    statistics,
    together,
    sets,
    _merged(
      _user_scores(run, prediction),
      _personal_scores(run),
      _own_scores(run, personalized),
    ),
    counts,
    choice,
    run.rounds,
    missing,
  )


def scores_by_name(report: Report) -> dict[str, float]:
  """Returns summary scores of a report by name, for tables over runs."""
  whole, *over_sites = report.summary
  # The run itself reports the other scores of all examples.
  ours = ('coverage', 'size', 'single', 'auroc', 'width')
  scores = {k: v for k, v in whole.items() if k.partition('_')[0] in ours}
  for row in over_sites:
    place = row['over'].replace(' ', '_')
    scores |= {f'{k}_{place}': v for k, v in row.items() if k != 'over'}
  return {name: value for name, value in scores.items() if value is not None}


def _own_scores(run, personalized) -> Iterator[tuple[str, Row]]:
  """Yields the scores of each site's personalized model on its test share."""
  tested = dict(run.test.sites)
  for own in personalized:
    if own.site not in tested:
      continue
    share, sets = run.test.take(tested[own.site]), own.sets
    row = _scores('personalized', run.trained.replace(own.model), share, sets)
    # Levels with too few calibration examples are not scored.
    for level in sets.levels if sets else ():
      if not sets.is_enough(level):
        row = {k: v for k, v in row.items() if not k.endswith(f'_{level:g}')}
    if own.fine_tuned is not None:
      before = run.trained.replace(own.fine_tuned)
      row |= _scores('fine_tuned', before, share, None)
      row['own_weight'] = own.own_weight
    yield own.site, row


def _user_scores(run, prediction) -> Iterator[tuple[str, Row]]:
  """Yields the scores of `--own_scores` at each site."""
  functions, y = run.trained.config.functions_of_scores, run.test.y
  given = prediction[: 2 if run.trained.task.is_numeric else 1]
  for site, rows in run.test.sites if functions else ():
    some = [values[rows] for values in given]
    with stopping.wrap_errors('--own_scores'):
      yield site, {k: float(f(*some, y[rows])) for k, f in functions.items()}


def _personal_scores(run) -> Iterator[tuple[str, Row]]:
  """Yields the scores of the personal models that the clients keep."""
  if run.trained.has_personal_models:
    for site, rows in run.test.sites:
      if site in run.trained.clients:
        own, share = run.trained.personal(site), run.test.take(rows)
        yield site, _scores('personal', own, share, None)


def _merged(*rows) -> dict[str, Row]:
  merged: dict[str, Row] = {}
  for site, row in itertools.chain(*rows):
    merged[site] = merged.get(site, {}) | row
  return merged


def _scores(prefix, trained, share, sets) -> Row:
  statistics = site_statistics.of(trained.predict(share.x), share.y, sets)
  return own_row(prefix, statistics, sets)


def own_row(
  prefix: str,
  statistics: site_statistics.Statistics,
  sets: prediction_sets.PredictionSets | None,
) -> Row:
  """Returns the scores of a site's own model, as columns with a prefix."""
  return {
    f'{prefix}_{name}': score
    for name, score in statistics.row(sets).items()
    if name.partition('_')[0] in _OWN_SCORES
  }


def _summary(sites: Sequence[Row]) -> Iterator[Row]:
  """Yields the mean, worst and standard deviation over sites, if any."""
  if not sites:
    return
  import pandas

  table = pandas.DataFrame(sites)
  others = ['site', 'num_examples', 'own_weight']
  scores = table.drop(columns=others, errors='ignore').astype(float)
  large = scores.columns.str.contains('|'.join(_WORSE_IF_LARGE))
  summaries = {
    'mean of all sites': scores.mean(),
    'worst site': scores.max().where(large, scores.min()),
  }
  if len(sites) > 1:
    # Some sites may lack a personalized model.
    spread = scores.std().where(scores.count() != 1, 0.0)
    summaries['standard deviation of sites'] = spread
  for what, values in summaries.items():
    known: dict[Any, float] = values.dropna().to_dict()
    yield {'over': what, **known}
