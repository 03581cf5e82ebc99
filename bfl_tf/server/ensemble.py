"""Ensembles of a round's models, in groups.

  A   the average of the clients' weights
  C   the clients' models
  S   samples from a distribution over global models
  B   the clients' models, whose predictions are interpolated between their
      mixture and their product

The stage alone only scores the ensembles (FedBE, Figure 3). Distillation uses
their groups as teachers.

References:
  H. Chen, W. Chao. FedBE. ICLR 2021, section 3.3: groups A, C and S.
  M. Hasan et al. Calibrated one round federated learning with Bayesian
  inference in the predictive space. AAAI 2024: group B (beta-Predictive Bayes).
"""

from collections.abc import Iterable, Sequence
import dataclasses
from typing import Any

import numpy as np

from bfl_tf import seeds, weights
from bfl_tf.declare.settings import setting
from bfl_tf.server import posteriors, teacher_posteriors
from bfl_tf.server.resources import Resources
from bfl_tf.server.stage import Stage

# Groups whose unions are scored too; B is scored alone.
GROUPS = ('A', 'C', 'S')
ALL = (*GROUPS, 'B')
_LETTERS = (
  'A: average, C: clients, S: samples, B: mixture and product of clients'
)


@dataclasses.dataclass(frozen=True, eq=False)
class Ensemble(Stage):
  """Creates the groups, which the evaluation of the round scores.

  Attributes:
    posterior: Distribution of group S, an instance of one of
      `TEACHER_POSTERIORS`.
  """

  resources: Resources
  groups: str = setting(
    '+'.join(GROUPS), f'Groups to make and score, joined by + ({_LETTERS}).'
  )
  num_samples: int = setting(10, 'Number of models in group S.', ge=1)
  weighted: bool = setting(
    False,
    "Also score the mixture of group C with the clients' weights, in "
    'columns that end in _wC.',
  )
  beta: float = setting(
    0.5,
    "Weight of the product of the clients' predictions in group B; 0 is "
    'their mixture.',
    ge=0,
    le=1,
  )
  fits_beta: bool = setting(
    False,
    "Choose beta in each round by the likelihood of the server's labeled "
    'examples; column beta.',
  )
  posterior: Any = setting(
    'auto',
    'Distribution that the models of group S are sampled from.',
    table=teacher_posteriors.TEACHER_POSTERIORS,
  )
  min_variance: float = setting(
    0.1,
    'Lower bound on sampled moving variances, relative to the average '
    "model's; `sampled_floored_fraction` reports how many reach it.",
    ge=0,
  )

  name = 'ensemble'

  def __post_init__(self):
    if self.fits_beta:
      if 'B' not in self.predictors:
        raise ValueError(
          '--ensemble.fits_beta needs group B: set --ensemble.groups=B.'
        )
      self.resources.require('--ensemble.fits_beta', labels=True)
    self.statistics  # noqa: B018 (a posterior that does not fit shows here)

  @property
  def statistics(self) -> tuple:
    needed = []
    if {'B', 'C'} & set(self.predictors):
      needed.append(posteriors.Updates())
    if 'S' in self.predictors:
      needed.append(self.posterior.statistic(self.resources.layout))
    return tuple(statistic for statistic in needed if statistic)

  @property
  def predictors(self) -> tuple[str, ...]:
    union, _, last = self.groups.rpartition('+')
    if last != 'B':
      return groups_of('ensemble.groups', self.groups, GROUPS)
    others = groups_of('ensemble.groups', union, GROUPS) if union else ()
    return (*others, 'B')

  def __call__(self, state, reference, pooled, statistics, seed):
    groups, info = self.make(pooled, statistics, seed)
    return state, info, groups

  def make(
    self, pooled: weights.Weights, statistics, seed: np.ndarray
  ) -> tuple[dict[str, Sequence[weights.Weights]], dict[str, float]]:
    """Returns the models by group, and columns of `metrics.csv`."""
    groups: dict[str, Sequence[weights.Weights]] = {}
    info = {}
    if 'A' in self.predictors:
      groups['A'] = (pooled,)
    found = statistics.get(posteriors.Updates())
    if 'C' in self.predictors:
      shares = found.shares if self.weighted else None
      groups['C'] = posteriors.Models(
        len(found.models), found.models.__getitem__, shares
      )
    if 'B' in self.predictors:
      groups['B'] = posteriors.Models(
        len(found.models), found.models.__getitem__
      )
    if 'S' in self.predictors:
      draws = self._draws(pooled, statistics, seeds.child(seed, 0))
      # Recalibration replaces the sampled variances.
      if draws.is_variance.any() and not self.resources.recalibrates:
        info['sampled_floored_fraction'] = draws.floored_fraction()
      groups['S'] = draws
    groups = {
      name: self.resources.recalibrated(
        group, seeds.child(seed, 1 + ALL.index(name))
      )
      for name, group in groups.items()
    }
    if 'B' in groups:
      info['beta'] = self.beta
      if self.fits_beta:
        info['beta'] = self._best_beta(groups['B'], seeds.child(seed, 5))
      models = groups['B']
      groups['B'] = posteriors.Models(
        len(models), models.__getitem__, beta=info['beta']
      )
    return groups, info

  def _best_beta(self, group, seed):
    """Returns the beta with the largest likelihood of the server's labels."""
    betas, labels = {'B': self.beta}, self.resources.server_labels
    mixtures, _ = self.resources.mixtures({'B': group}, betas, seed)
    if 'B' not in mixtures:
      return self.beta
    return mixtures.best_beta('B', np.asarray(labels))

  def _draws(self, pooled, statistics, seed):
    layout = self.resources.layout
    needed = self.posterior.statistic(layout)
    result = statistics[needed] if needed else None
    distribution, like = self.posterior.distribution(pooled, result, layout)
    return posteriors.Draws(
      distribution,
      like,
      layout.is_variance(),
      seed,
      self.num_samples,
      self.min_variance,
    )


def groups_of(flag: str, union: str, known: Iterable[str]) -> tuple[str, ...]:
  """Returns the groups of a union, e.g., A, C and S of `A+C+S`."""
  known = [group for group in ALL if group in known]
  groups = tuple(union.split('+'))
  in_order = tuple(group for group in known if group in groups)
  if groups != in_order or ('B' in groups and len(groups) > 1):
    raise ValueError(
      f'--{flag}={union} must be one of {", ".join(known)}, or some of '
      f'{", ".join(GROUPS)} joined by + in this order ({_LETTERS}).'
    )
  return groups
