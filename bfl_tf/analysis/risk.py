"""The risk of an event: its statistics and its recalibration, from counts.

For labels of two classes, each site counts its examples by class and by the log
odds of the second class, in bins of width 0.05. The counts of sites can be
added. All statistics of the risk follow from them, up to this rounding.

A recalibration maps the log odds z of the event to slope * z + intercept
(Platt 2000), or to slope * z, where 1 / slope is a temperature. It is fitted by
Newton's method on the counts of calibration examples, for all sites and for
each site. Normal priors with standard deviations 0.5 of the slope and 1 of the
intercept keep fits of few examples finite. Their means are 1 and 0; for a site,
they are the fit of all sites.

#### References

[1]: John Platt. Probabilistic outputs for support vector machines. 2000.
[2]: Robert Newcombe. Confidence intervals for an effect size measure based on
     the Mann-Whitney statistic. Part 2. _Statistics in Medicine_, 2006.
[3]: Ben Van Calster et al. Calibration: the Achilles heel of predictive
     analytics. _BMC Medicine_, 2019.
[4]: Gary Collins et al. Sample size considerations for the external validation
     of a multivariable prognostic model. _Statistics in Medicine_, 2016.
"""

from collections.abc import Mapping, Sequence
import json
import os
import pathlib
import types
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from bfl_tf import files, metrics, run_files

# Bins of the log odds; the outer bins contain all values beyond.
_EDGES = np.linspace(-10, 10, 401)
_CENTERS = (_EDGES[1:] + _EDGES[:-1]) / 2
NUM_BINS = _CENTERS.size
# Precisions of the priors of slope and intercept. A parameter with a very large
# one is not fitted.
_FIXED = 1e15
RECALIBRATIONS = {'temperature': (4.0, _FIXED), 'platt': (4.0, 1.0)}
ALL = 'all examples'
# Fewer examples with, or without, the event give rough statistics [4].
MIN_EVENTS = 100
_IDENTITY = (1.0, 0.0)
_NORMAL_95 = metrics.half_width(0.95)
_MOST_STEPS = 100


def log_odds(probs: np.ndarray, event: int) -> np.ndarray:
  """Returns the log odds `[num_examples]` of one of two classes."""
  logs = np.log(np.maximum(probs.astype(float), metrics.MIN_PROBABILITY))
  return logs[:, event] - logs[:, 1 - event]


def counts(probs: np.ndarray, y: np.ndarray) -> np.ndarray:
  """Returns the number of examples by class and log odds of the second class.

  The result is `[2, NUM_BINS]`, or `[2, 0]` if there are not two classes.
  """
  if probs.shape[1] != 2:
    return np.zeros([2, 0], np.int64)
  bins = np.searchsorted(_EDGES[1:-1], log_odds(probs, 1), side='right')
  histogram = np.zeros([2, NUM_BINS], np.int64)
  np.add.at(histogram, (y, bins), 1)
  return histogram


class Risks(NamedTuple):
  """Numbers of examples by the log odds of the event, `[num_points]` each."""

  log_odds: np.ndarray
  events: np.ndarray
  others: np.ndarray

  @classmethod
  def of(cls, histogram: np.ndarray, event: int) -> 'Risks':
    """Returns the examples of `counts`; `event` is the class 0 or 1."""
    points = np.nonzero(histogram.sum(0))[0]
    signed = _CENTERS[points] * (1 if event else -1)
    return cls(signed, histogram[event, points], histogram[1 - event, points])

  def recalibrated(self, mapping: Sequence[float]) -> 'Risks':
    """Returns the examples with slope * log odds + intercept."""
    return self._replace(log_odds=mapping[0] * self.log_odds + mapping[1])

  def fit(
    self,
    precision: Sequence[float],
    center: Sequence[float] = _IDENTITY,
  ) -> tuple[np.ndarray, np.ndarray]:
    """Fits slope and intercept of a logistic regression by Newton's method.

    Both have normal priors with means `center`. Returns slope and intercept
    `[2]`, and their standard errors.
    """
    x = np.stack([self.log_odds, np.ones_like(self.log_odds)])
    total = self.events + self.others
    beta = np.array(center)
    for _ in range(_MOST_STEPS):
      p = special.expit(beta @ x)
      gradient = x @ (total * p - self.events) + precision * (beta - center)
      hessian = (x * total * p * (1 - p)) @ x.T + np.diag(precision)
      variance = np.linalg.inv(hessian)
      step = variance @ gradient
      change = np.abs(step @ x).max()
      if change < 1e-9:
        break
      # Shorter steps where p varies: the likelihood then always increases.
      beta = beta - step * np.log1p(change) / change
    return beta, np.sqrt(np.diag(variance))

  def auroc(self) -> tuple[float, float, float] | None:
    """Returns the AUROC and its 95 % interval, method 5 of [2].

    None without events or without other examples.
    """
    from sklearn import metrics as sk_metrics

    n, m = int(self.events.sum()), int(self.others.sum())
    if not (n and m):
      return None
    area = sk_metrics.roc_auc_score(
      np.repeat([1, 0], self.log_odds.size),
      np.tile(self.log_odds, 2),
      sample_weight=np.concatenate([self.events, self.others]),
    )
    # An area is in the interval if it explains the distance to the found one.
    areas = np.append(np.linspace(0, 1, 10_001), area)
    spread = (1 - areas) / (2 - areas) + areas / (1 + areas)
    spread = 1 + ((n + m) / 2 - 1) * spread
    variance = areas * (1 - areas) * spread / (n * m)
    inside = areas[(areas - area) ** 2 <= _NORMAL_95**2 * variance]
    return area, inside.min(), inside.max()

  def groups(self, most: int = 5) -> list[tuple[float, int, int]]:
    """Returns mean risk, events and size of groups of similar risk and size."""
    log_odds, events, others = (n[np.argsort(self.log_odds)] for n in self)
    total = events + others
    number = max(1, min(most, total.sum() // 10))
    place = (np.cumsum(total) - total / 2) * number // total.sum()
    groups = []
    for rows in (place == group for group in np.unique(place)):
      size = total[rows].sum()
      mean = total[rows] @ special.expit(log_odds[rows]) / size
      groups.append((float(mean), int(events[rows].sum()), int(size)))
    return groups

  def row(self, threshold: float) -> dict[str, Any]:
    """Returns the statistics; None for an unknown one.

    An example is positive if its risk is at least `threshold`, in (0, 1). The
    intercept is that of a fit with slope 1, and the slope that of a fit of both
    [3].
    """
    size = self.events + self.others
    positive = self.log_odds >= special.logit(threshold)
    hits, alarms = (int(n[positive].sum()) for n in self[1:])
    misses, rest = (int(n[~positive].sum()) for n in self[1:])
    row: dict[str, Any] = {
      'num_examples': int(size.sum()),
      'num_events': hits + misses,
      'mean_risk': float(size @ special.expit(self.log_odds) / size.sum()),
      **_interval('auroc', self.auroc()),
    }
    for name, part, whole in (
      ('sensitivity', hits, hits + misses),
      ('specificity', rest, rest + alarms),
      ('positive_predictive_value', hits, hits + alarms),
      ('negative_predictive_value', rest, rest + misses),
    ):
      row |= {name: part / whole if whole else None, f'{name}_of': whole}
    # Without events or others, the likelihood has no maximum in the intercept;
    # if a threshold separates them, it has none in the slope.
    with_event, without = (self.log_odds[n > 0] for n in self[1:])
    both = bool(with_event.size and without.size)
    mixed = both and (
      min(with_event) < max(without) and min(without) < max(with_event)
    )
    for name, place, is_known, precision in (
      ('intercept', 1, both, (_FIXED, 0)),
      ('slope', 0, mixed, (0, 0)),
    ):
      ends = None
      if is_known:
        beta, errors = self.fit(precision)
        ends = beta[place] + _NORMAL_95 * errors[place] * np.array([0, -1, 1])
      row |= _interval(name, ends)
    return row


def check(choice: 'Risk', classes: Sequence[str], has_held: bool) -> None:
  """Raises a ValueError for a choice that a run cannot fulfil."""
  names = ('--event', '--risk_threshold', '--recalibrate')
  flags = [f'{name}={value}' for name, value in zip(names, choice) if value]
  if flags and len(classes) != 2:
    raise ValueError(
      f'{flags[0]} needs labels of two classes, and the run has '
      f'{len(classes)}: remove it.'
    )
  if choice.event not in ('', *classes):
    raise ValueError(
      f'--event={choice.event} is no class: choose {" or ".join(classes)}.'
    )
  if choice.recalibrate and not has_held:
    raise ValueError(
      f'--recalibrate={choice.recalibrate} needs calibration examples: use a '
      'run with --calibration_fraction, or --calibrate_on_test=0.5.'
    )


class Risk(NamedTuple):
  """Event, threshold and recalibration of a report, as stored in `risk.json`.

  A choice of the user has no `maps`, and `fitted` completes it.

  Attributes:
    event: Name of the class; empty for the rarer class of the calibration
      examples, or of the test examples without these.
    threshold: Risk from which an example is positive; 0 for the fraction of
      events in the same examples.
    recalibrate: One of `RECALIBRATIONS`, or empty.
    maps: Slope and intercept of the recalibration by site; `''` is for all.
  """

  event: str = ''
  threshold: float = 0.0
  recalibrate: str = ''
  maps: Mapping[str, tuple[float, float]] = types.MappingProxyType({})

  def fitted(
    self,
    classes: Sequence[str],
    histograms: Mapping[str, np.ndarray],
    test: np.ndarray,
  ) -> 'Risk':
    """Chooses the event and the threshold, and fits the recalibration."""
    whole: Any = sum(histograms.values()) if histograms else test
    sizes = whole.sum(-1)
    rarer = int(sizes[1] <= sizes[0])
    event = classes.index(self.event) if self.event else rarer
    # A threshold of 0 or 1 would make all examples alike.
    rate = float(np.clip(sizes[event] / sizes.sum(), 0.001, 0.999))
    maps: dict[str, Any] = {'': _IDENTITY}
    if self.recalibrate:
      # The map for all sites is the prior of those of the sites.
      for name, histogram in {'': whole, **histograms}.items():
        precision = RECALIBRATIONS[self.recalibrate]
        fitted, _ = Risks.of(histogram, event).fit(precision, maps[''])
        # The sum changes -0.0 into 0.0.
        maps[name] = (*(fitted.round(9) + 0.0).tolist(),)
    threshold = self.threshold or round(rate, 3)
    return Risk(classes[event], threshold, self.recalibrate, maps)

  def mapping(self, site: str = '') -> tuple[float, float]:
    """Returns slope and intercept of a site; those of all for another one."""
    return self.maps.get(site, self.maps[''])

  def apply(
    self, probs: np.ndarray, classes: Sequence[str], site: str = ''
  ) -> np.ndarray:
    """Returns recalibrated probabilities `[num_examples, 2]`."""
    event = classes.index(self.event)
    slope, intercept = self.mapping(site)
    odds = slope * log_odds(probs, event) + intercept
    both = (-odds, odds) if event else (odds, -odds)
    return special.expit(np.stack(both, 1)).astype(np.float32)

  def rows(
    self, test: Mapping[str, Risks], facts: Mapping[str, Mapping[str, Any]]
  ) -> list[dict[str, Any]]:
    """Returns the statistics of test examples, by site.

    They are after the recalibration for all sites. `..._before` and `..._own`
    are without it, and with that of each site. `facts` are more columns. The
    site `''` stands for all.
    """
    own = {k: v.recalibrated(self.mapping(k)) for k, v in test.items()}
    if sites := [each for name, each in own.items() if name]:
      own[''] = Risks(*map(np.concatenate, zip(*sites)))
    rows = []
    for site, before in test.items():
      row = before.recalibrated(self.maps['']).row(self.threshold)
      others = {'before': before, 'own': own[site]} if self.recalibrate else {}
      for what, risks in others.items():
        other_row = risks.row(self.threshold)
        row |= {f'{k}_{what}': other_row[k] for k in ('intercept', 'slope')}
      rows.append({'site': site or ALL, **row, **facts.get(site, {})})
    return rows


DEFAULT = Risk()


def _interval(name, values) -> dict[str, float | None]:
  """Returns the columns of a statistic and of the ends of its interval."""
  known = [None] * 3 if values is None else map(float, values)
  return dict(zip((name, f'{name}_low', f'{name}_high'), known))


def write(run_dir: str | os.PathLike, risk: Risk) -> None:
  """Writes `risk.json` to the directory of a run."""
  path = pathlib.Path(run_dir) / run_files.RISK
  files.write_text(path, json.dumps(risk._asdict(), indent=2) + '\n')


def read(run_dir: str | os.PathLike) -> Risk | None:
  """Returns the risk of a run with a report, or None."""
  path = pathlib.Path(run_dir) / run_files.RISK
  if not path.exists():
    return None
  with files.reading(path, 'run "bfl-tf report" again'):
    risk = Risk(**files.read_json(path))
    maps: Any = {site: tuple(each) for site, each in risk.maps.items()}
    return risk._replace(maps=maps)
