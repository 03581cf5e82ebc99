"""Ensembles of a round's models, in three groups (FedBE, section 3.3).

  A   the average of the clients' weights
  C   the clients' models
  S   samples from a distribution over global models

The stage alone only scores the ensembles (FedBE, Figure 3). Distillation uses
their groups as teachers.
"""

from collections.abc import Iterable, Sequence
import dataclasses
from typing import Annotated, Any

import numpy as np

from bfl_tf import seeds, weights
from bfl_tf.config.settings import Setting
from bfl_tf.server import posteriors, teacher_posteriors
from bfl_tf.server.resources import Resources
from bfl_tf.server.stage import Stage

GROUPS = ('A', 'C', 'S')
_LETTERS = 'A: average, C: clients, S: samples'


@dataclasses.dataclass(frozen=True, eq=False)
class Ensemble(Stage):
  """Creates the groups, which the evaluation of the round scores.

  Attributes:
    resources: Resources of the run.
    posterior: Distribution of group S, an instance of one of
      `TEACHER_POSTERIORS`.
  """

  resources: Resources
  groups: Annotated[
    str, Setting(f'Union of groups to make and score ({_LETTERS}).')
  ] = '+'.join(GROUPS)
  num_samples: Annotated[int, Setting('Number of models in group S.', ge=0)] = (
    10
  )
  weighted: Annotated[
    bool,
    Setting(
      "Also score the mixture of group C with the clients' weights, in "
      'columns that end in _wC.'
    ),
  ] = False
  posterior: Annotated[
    Any,
    Setting(
      'Distribution that the models of group S are sampled from.',
      table=teacher_posteriors.TEACHER_POSTERIORS,
    ),
  ] = 'auto'
  min_variance: Annotated[
    float,
    Setting(
      'Lower bound on sampled moving variances, relative to the average '
      "model's; `sampled_floored_fraction` reports how many reach it.",
      ge=0,
    ),
  ] = 0.1

  name = 'ensemble'

  def __post_init__(self):
    names = self.predictors
    if 'S' in names and self.num_samples < 1:
      raise ValueError(
        f'--ensemble.num_samples={self.num_samples} gives no samples: remove S '
        'from --ensemble.groups.'
      )
    self.statistics  # noqa: B018 (a posterior that does not fit shows here)

  @property
  def statistics(self) -> tuple:
    needed = [posteriors.Updates()] if 'C' in self.predictors else []
    if 'S' in self.predictors:
      needed.append(self.posterior.statistic(self.resources.layout))
    return tuple(statistic for statistic in needed if statistic)

  @property
  def predictors(self) -> tuple[str, ...]:
    return groups_of('ensemble.groups', self.groups, GROUPS)

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
    if 'C' in self.predictors:
      found = statistics[posteriors.Updates()]
      shares = found.shares if self.weighted else None
      groups['C'] = posteriors.Models(
        len(found.models), found.models.__getitem__, shares
      )
    if 'S' in self.predictors:
      draws = self._draws(pooled, statistics, seeds.child(seed, 0))
      # Recalibration replaces the sampled variances.
      if draws.is_variance.any() and not self.resources.recalibrates:
        info['sampled_floored_fraction'] = draws.floored_fraction()
      groups['S'] = draws
    if self.resources.recalibrates:
      groups = {
        name: self._recalibrated(
          group, seeds.child(seed, 1 + GROUPS.index(name))
        )
        for name, group in groups.items()
      }
    return groups, info

  def _recalibrated(self, group, seed):
    """Returns models whose buffers are re-estimated at first use."""
    buffers: dict[int, np.ndarray] = {}

    def make(index):
      model = group[index]
      if index not in buffers:
        of = seeds.child(seed, index)
        buffers[index] = self.resources.measured(model, of).buffers
      return model._replace(buffers=buffers[index])

    return posteriors.Models(len(group), make, posteriors.shares_of(group))

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
  known = [group for group in GROUPS if group in known]
  groups = tuple(union.split('+'))
  if groups != tuple(group for group in known if group in groups):
    raise ValueError(
      f'--{flag}={union} must join some of {", ".join(known)} with +, in this '
      f'order ({_LETTERS}).'
    )
  return groups
