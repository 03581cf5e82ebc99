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
"""

from collections.abc import Mapping, Sequence
import functools
import json
import os
import pathlib
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from bfl_tf import files, metrics, run_files

# Bins of the log odds; the outer bins contain all values beyond.
_EDGES = np.linspace(-10, 10, 401)
_CENTERS = (_EDGES[1:] + _EDGES[:-1]) / 2
NUM_BINS = _CENTERS.size
RECALIBRATIONS = {'temperature': (0,), 'platt': (0, 1)}
ALL = 'all examples'
_IDENTITY = (1.0, 0.0)
_NORMAL_95 = 1.959964
_MOST_STEPS = 100
# Of the priors of slope and intercept.
_PRECISIONS = (1 / 0.5**2, 1.0)


def log_odds(probs: np.ndarray, event: int) -> np.ndarray:
  """Returns the log odds `[num_examples]` of one of two classes."""
  logs = np.log(np.maximum(probs.astype(float), metrics.MIN_PROBABILITY))
  return logs[:, event] - logs[:, 1 - event]


def counts(probs: np.ndarray, y: np.ndarray) -> np.ndarray:
  """Returns the number of examples by class and log odds of the second class.

  Args:
    probs: `[num_examples, num_classes]`.
    y: `[num_examples]`, integer labels.

  Returns:
    `[2, NUM_BINS]` integers; `[2, 0]` if there are not two classes.
  """
  if probs.shape[1] != 2:
    return np.zeros([2, 0], np.int64)
  bins = np.searchsorted(_EDGES[1:-1], log_odds(probs, 1), side='right')
  found = np.zeros([2, NUM_BINS], np.int64)
  np.add.at(found, (y, bins), 1)
  return found


class Risks(NamedTuple):
  """Examples by the log odds of the event.

  Attributes:
    log_odds: `[num_points]`, log odds of the event.
    events: `[num_points]`, number of examples with the event.
    others: `[num_points]`, number of examples without the event.
  """

  log_odds: np.ndarray
  events: np.ndarray
  others: np.ndarray

  @classmethod
  def of(cls, found: np.ndarray, event: int) -> 'Risks':
    """Returns the examples of `counts`.

    Args:
      event: Number of the class that is the event, 0 or 1.
    """
    points = np.nonzero(found.sum(0))[0]
    signed = _CENTERS[points] * (1 if event else -1)
    return cls(signed, found[event, points], found[1 - event, points])

  def merge(self, other: 'Risks') -> 'Risks':
    """Returns the examples of both."""
    return Risks(*map(np.concatenate, zip(self, other)))

  def recalibrated(self, mapping: Sequence[float]) -> 'Risks':
    """Returns the examples with slope * log odds + intercept."""
    slope, intercept = mapping
    return self._replace(log_odds=slope * self.log_odds + intercept)

  def fit(
    self, free: Sequence[int], prior: Sequence[float] | None = None
  ) -> tuple[np.ndarray, np.ndarray] | None:
    """Fits slope and intercept of a logistic regression by Newton's method.

    Args:
      free: Fitted parameters: 0 is the slope, 1 the intercept. The other one
        stays at that of the identity, 1 or 0.
      prior: Means of the normal priors; None for no prior.

    Returns:
      Slope and intercept `[2]`, and their standard errors, 0 if not fitted.
      None if the likelihood has no maximum.
    """
    x = np.stack([self.log_odds, np.ones_like(self.log_odds)])
    total = self.events + self.others
    precision = np.array([0.0, 0.0] if prior is None else _PRECISIONS)
    center = np.array(_IDENTITY if prior is None else prior, float)
    found, errors, free = center.copy(), np.zeros(2), list(free)
    for _ in range(_MOST_STEPS):
      p = special.expit(found @ x)
      gradient = x @ (total * p - self.events) + precision * (found - center)
      hessian = (x * total * p * (1 - p)) @ x.T + np.diag(precision)
      variance = np.linalg.pinv(hessian[np.ix_(free, free)])
      step = variance @ gradient[free]
      # A step of at most 1 cannot leave the region where p varies.
      found[free] -= step / max(1, np.abs(step).max())
      if np.abs(step).max() < 1e-6:
        errors[free] = np.sqrt(np.diag(variance))
        return found, errors
    return None

  def auroc(self) -> tuple[float, float, float] | None:
    """Returns the AUROC and its 95 % interval, method 5 of [2].

    None without events or without other examples.
    """
    from scipy import optimize
    from sklearn import metrics as sk_metrics

    n, m = int(self.events.sum()), int(self.others.sum())
    if not (n and m):
      return None
    labels = np.repeat([1, 0], self.log_odds.size)
    weights = np.concatenate([self.events, self.others])
    area = float(
      sk_metrics.roc_auc_score(
        labels, np.tile(self.log_odds, 2), sample_weight=weights
      )
    )
    half = (n + m) / 2 - 1

    def distance(value):
      spread = 1 + half * ((1 - value) / (2 - value) + value / (1 + value))
      variance = value * (1 - value) * spread / (n * m)
      return (value - area) ** 2 - _NORMAL_95**2 * variance

    # At 0 and 1, the distance of these values from themselves is 0.
    inside = min(max(area, 1e-9), 1 - 1e-9)
    low = optimize.brentq(distance, 0, inside) if area > 0 else 0.0
    high = optimize.brentq(distance, inside, 1) if area < 1 else 1.0
    return area, float(low), float(high)

  def confusion(self, threshold: float) -> dict[str, tuple[int, int]]:
    """Returns numerators and denominators at a threshold of the risk.

    An example is positive if its risk is at least `threshold`, in (0, 1).
    """
    positive = self.log_odds >= special.logit(threshold)
    hits, misses = self.events[positive].sum(), self.events[~positive].sum()
    alarms, rest = self.others[positive].sum(), self.others[~positive].sum()
    return {
      'sensitivity': (int(hits), int(hits + misses)),
      'specificity': (int(rest), int(rest + alarms)),
      'positive_predictive_value': (int(hits), int(hits + alarms)),
      'negative_predictive_value': (int(rest), int(rest + misses)),
    }

  def groups(self, most: int = 5) -> list[tuple[float, int, int]]:
    """Returns mean risk, events and size of groups of similar risk and size."""
    order = np.argsort(self.log_odds, kind='stable')
    total = (self.events + self.others)[order]
    number = max(1, min(most, total.sum() // 10))
    place = (np.cumsum(total) - total / 2) * number // total.sum()
    found = []
    for group in np.unique(place):
      rows = order[place == group]
      size = (self.events + self.others)[rows]
      mean = float(np.average(special.expit(self.log_odds[rows]), weights=size))
      found.append((mean, int(self.events[rows].sum()), int(size.sum())))
    return found

  def row(self, threshold: float) -> dict[str, Any]:
    """Returns the statistics; None for an unknown one.

    The intercept is that of a fit with slope 1, and the slope that of a fit of
    both [3].
    """
    size, events = self.events + self.others, int(self.events.sum())
    row: dict[str, Any] = {
      'num_examples': int(size.sum()),
      'num_events': events,
      'mean_risk': float(size @ special.expit(self.log_odds) / size.sum()),
    }
    row |= _interval('auroc', self.auroc())
    for name, (part, whole) in self.confusion(threshold).items():
      row |= {name: part / whole if whole else None, f'{name}_of': whole}
    for name, place, free in (('intercept', 1, (1,)), ('slope', 0, (0, 1))):
      ends = None
      if fitted := self.fit(free):
        error = _NORMAL_95 * fitted[1][place]
        ends = fitted[0][place] + error * np.array([0, -1, 1])
      row |= _interval(name, ends)
    return row


class Choice(NamedTuple):
  """Choices of the user for the risk.

  Attributes:
    event: Name of the class; empty for the rarer class of the calibration
      examples, or of the test examples without these.
    threshold: Risk from which an example is positive; 0 for the fraction of
      events in the same examples.
    recalibrate: One of `RECALIBRATIONS`, or empty.
  """

  event: str = ''
  threshold: float = 0.0
  recalibrate: str = ''


def check(choice: Choice, classes: Sequence[str], has_held: bool) -> None:
  """Raises a ValueError for a choice that a run cannot fulfil.

  Args:
    classes: Names of the classes.
    has_held: Whether there are calibration examples.
  """
  flags = [f'--{k}={v}' for k, v in choice._asdict().items() if v]
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


DEFAULT = Choice()


class Risk(NamedTuple):
  """Event, threshold and recalibration of a report, as stored in `risk.json`.

  Attributes:
    event: Name of the class.
    threshold: Risk from which an example is positive.
    recalibrate: One of `RECALIBRATIONS`, or empty.
    maps: Slope and intercept of the recalibration by site; `''` is for all.
  """

  event: str
  threshold: float
  recalibrate: str
  maps: dict[str, tuple[float, float]]

  @classmethod
  def of(
    cls,
    choice: Choice,
    classes: Sequence[str],
    held: Mapping[str, np.ndarray],
    test: np.ndarray,
  ) -> 'Risk':
    """Chooses the event and the threshold, and fits the recalibration.

    Args:
      classes: Names of the two classes.
      held: `counts` of the calibration examples by site; may be empty.
      test: `counts` of all test examples.
    """
    whole = np.sum([*held.values()], axis=0) if held else test
    sizes = whole.sum(-1)
    event = int(sizes[1] <= sizes[0])
    if choice.event:
      event = classes.index(choice.event)
    # A threshold of 0 or 1 would make all examples alike.
    rate = float(np.clip(sizes[event] / sizes.sum(), 0.001, 0.999))
    maps = {'': _IDENTITY}
    if choice.recalibrate:
      free = RECALIBRATIONS[choice.recalibrate]
      maps[''] = _fit(Risks.of(whole, event), free, _IDENTITY)
      for name in filter(None, held):
        maps[name] = _fit(Risks.of(held[name], event), free, maps[''])
    return cls(
      classes[event], choice.threshold or round(rate, 3), choice.recalibrate,
      maps,
    )  # fmt: skip

  def mapping(self, site: str = '') -> tuple[float, float]:
    """Returns slope and intercept of a site, or those of all sites."""
    return self.maps.get(site, self.maps[''])

  def apply(
    self, probs: np.ndarray, classes: Sequence[str], site: str = ''
  ) -> np.ndarray:
    """Returns recalibrated probabilities `[num_examples, 2]`."""
    event = classes.index(self.event)
    slope, intercept = self.mapping(site)
    p = special.expit(slope * log_odds(probs, event) + intercept)
    both = (1 - p, p) if event else (p, 1 - p)
    return np.stack(both, 1).astype(np.float32)

  def rows(
    self, test: Mapping[str, Risks], facts: Mapping[str, Mapping[str, Any]]
  ) -> list[dict[str, Any]]:
    """Returns the statistics of test examples, by site.

    After a recalibration, they are those of the recalibration for all sites.
    `..._before` and `..._own` are without it, and with that of each site.

    Args:
      test: Test examples by site; the key `''` is for all.
      facts: More columns by site.
    """
    own = {k: v.recalibrated(self.mapping(k)) for k, v in test.items()}
    if sites := [each for name, each in own.items() if name]:
      own[''] = functools.reduce(Risks.merge, sites)
    rows = []
    for site, before in test.items():
      row = before.recalibrated(self.maps['']).row(self.threshold)
      others = {'before': before, 'own': own[site]} if self.recalibrate else {}
      for what, risks in others.items():
        found = risks.row(self.threshold)
        row |= {f'{k}_{what}': found[k] for k in ('intercept', 'slope')}
      rows.append({'site': site or ALL, **row, **facts.get(site, {})})
    return rows


def _interval(name, values) -> dict[str, float | None]:
  """Returns the columns of a statistic and of the ends of its interval."""
  known = [None] * 3 if values is None else map(float, values)
  return dict(zip((name, f'{name}_low', f'{name}_high'), known))


def _fit(risks, free, prior) -> tuple[float, float]:
  found = risks.fit(free, prior)
  slope, intercept = prior if found is None else found[0]
  return float(slope), float(intercept)


def write(run_dir: str | os.PathLike, risk: Risk) -> None:
  """Writes `risk.json` to the directory of a run."""
  path = pathlib.Path(run_dir) / run_files.RISK
  files.write_text(path, json.dumps(risk._asdict(), indent=2) + '\n')


def read(run_dir: str | os.PathLike) -> Risk | None:
  """Returns the risk of a run with a report, or None.

  Raises:
    ValueError: The file is damaged.
  """
  path = pathlib.Path(run_dir) / run_files.RISK
  if not path.exists():
    return None
  with files.reading(path, 'run "bfl-tf report" again'):
    found = Risk(**files.read_json(path, Risk))
    if not (
      '' in found.maps
      and np.isfinite([*found.maps.values()]).all()
      and 0 < found.threshold < 1
      and found.recalibrate in ('', *RECALIBRATIONS)
    ):
      raise ValueError('It is of another version.')
    maps: Any = {site: tuple(each) for site, each in found.maps.items()}
    return found._replace(maps=maps)
