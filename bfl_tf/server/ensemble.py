"""A round's models in three groups, to be asked together (FedBE, section 3.3).

  A   the clients' weight average
  C   the clients
  S   samples of a distribution over global models

As a stage of its own it only shows what their ensembles would predict (FedBE,
Figure 3); distillation takes its teachers from here.
"""

from collections.abc import Callable, Iterable, Sequence
import dataclasses
from typing import Any, ClassVar

import numpy as np

from bfl_tf import posteriors, registry, seeds
from bfl_tf import weights as weights_lib

GROUPS = ('A', 'C', 'S')
_LETTERS = 'A: average, C: clients, S: samples'
TEACHER_POSTERIORS = ('auto', 'gaussian', 'dirichlet', 'pooled')
GAUSSIAN_FITS = ('equation5', 'released')


@dataclasses.dataclass(frozen=True, eq=False)
class Ensemble:
  """Makes the groups; they are scored with the round's evaluation.

  Attributes:
    layout: of the model.
    recalibrated: (model, seed) -> model, for every member; None leaves batch
      normalization's statistics as they were averaged or sampled.
    ensemble: the groups to make.
    num_teacher_samples: members of S.
    teacher_posterior: what S samples: `gaussian`, Eq. 5 over the clients'
      means; `dirichlet`, Eq. 7; `pooled`, the posterior that the pooling rule
      returned; `auto`, the last for models with random weights and the first
      for others.
    gaussian_fit: `equation5`, or `released` for what the paper's published
      code does.
    dirichlet_alpha: of Eq. 7.
    min_scale: of a model that is a draw: a point.
    min_sampled_variance: floor of a sampled moving variance, as a fraction of
      the average's.
  """

  layout: weights_lib.Layout
  recalibrated: Callable | None = None
  ensemble: tuple[str, ...] = GROUPS
  num_teacher_samples: int = 10
  teacher_posterior: str = 'auto'
  gaussian_fit: str = 'equation5'
  dirichlet_alpha: float = 1.0
  min_scale: float = 1e-6
  min_sampled_variance: float = 0.1

  name: ClassVar[str] = 'ensemble'

  def __post_init__(self):
    check_groups('ensemble', self.ensemble, GROUPS)
    registry.check_choice(
      'teacher_posterior', self.teacher_posterior, TEACHER_POSTERIORS
    )
    registry.check_choice('gaussian_fit', self.gaussian_fit, GAUSSIAN_FITS)
    if 'S' in self.ensemble and self.num_teacher_samples < 1:
      raise ValueError(
        f'--num_teacher_samples={self.num_teacher_samples} leaves nothing to '
        'sample: leave S out of --ensemble and --teachers.'
      )
    posteriors.check_concentration('--dirichlet_alpha', self.dirichlet_alpha)
    if self._source == 'pooled' and not self.layout.size('loc'):
      raise ValueError(
        '--teacher_posterior=pooled needs random weights: --variant=flipout '
        'or a client part that gives all weights a posterior; choose gaussian '
        'or dirichlet.'
      )

  @property
  def statistics(self) -> tuple:
    """What must be reduced over the round's updates."""
    needed = []
    sampled = 'S' in self.ensemble
    if 'C' in self.ensemble or (sampled and self._source == 'dirichlet'):
      needed.append(posteriors.Updates())
    if sampled and self._source == 'gaussian':
      needed.append(self._gaussian)
    return tuple(needed)

  @property
  def predictors(self) -> tuple[str, ...]:
    """The groups that it makes."""
    return self.ensemble

  def __call__(self, state, reference, pooled, statistics, seed):
    groups, info = self.groups(pooled, statistics, seed)
    return state, info, groups

  def groups(
    self, pooled: weights_lib.Weights, statistics, seed: np.ndarray
  ) -> tuple[dict[str, Sequence[weights_lib.Weights]], dict[str, float]]:
    """Returns the models by group, and columns of `metrics.csv`."""
    groups: dict[str, Sequence[weights_lib.Weights]] = {}
    info = {}
    if 'A' in self.ensemble:
      groups['A'] = (pooled,)
    if 'C' in self.ensemble:
      groups['C'] = statistics[posteriors.Updates()].models
    if 'S' in self.ensemble:
      draws = self._draws(pooled, statistics, seeds.child(seed, 0))
      # Recalibration replaces what was drawn.
      if draws.is_variance.any() and not self.recalibrated:
        info['sampled_floored_fraction'] = draws.floored_fraction()
      groups['S'] = draws
    if self.recalibrated:
      groups = {
        name: _Recalibrated(
          group, self.recalibrated, seeds.child(seed, 1 + GROUPS.index(name))
        )
        for name, group in groups.items()
      }
    return groups, info

  @property
  def _source(self):
    if self.teacher_posterior != 'auto':
      return self.teacher_posterior
    return 'pooled' if self.layout.size('loc') else 'gaussian'

  @property
  def _gaussian(self):
    if self.gaussian_fit == 'equation5':
      return posteriors.Gaussian()
    sizes = tuple(shape.num_elements() for shape in self.layout.shapes)
    return posteriors.ReleasedGaussian(sizes)

  def _draws(self, pooled, statistics, seed):
    like, distribution = pooled, None
    if self._source == 'gaussian':
      distribution = statistics[self._gaussian]
    elif self._source == 'dirichlet':
      members = statistics[posteriors.Updates()]
      distribution = posteriors.SimplexMixture(
        [model.values for model in members.models],
        members.shares,
        self.dirichlet_alpha,
      )
    else:
      distribution = posteriors.of_model(pooled)
      like = pooled.at_a_point(self.min_scale)
    return posteriors.Draws(
      distribution,
      like,
      self.layout.is_variance(),
      seed,
      self.num_teacher_samples,
      self.min_sampled_variance,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Recalibrated(Sequence):
  """Models whose buffers are measured anew, when one is first asked for."""

  group: Sequence[weights_lib.Weights]
  recalibrated: Callable
  seed: np.ndarray
  _buffers: dict[int, np.ndarray] = dataclasses.field(default_factory=dict)

  def __len__(self) -> int:
    return len(self.group)

  def __getitem__(self, index: Any) -> Any:
    member = self.group[index]
    if index not in self._buffers:
      measured = self.recalibrated(member, seeds.child(self.seed, index))
      self._buffers[index] = measured.buffers
    return member._replace(buffers=self._buffers[index])


def check_groups(
  flag: str, groups: Sequence[str], known: Sequence[str]
) -> None:
  """Raises a ValueError unless `groups` are some of `known`, each once."""
  text = ','.join(groups)
  if not groups or set(groups) - set(known) or len(set(groups)) < len(groups):
    raise ValueError(
      f'--{flag}={text} must name at least one of {", ".join(known)}, each '
      f'once ({_LETTERS}).'
    )


def groups_of(flag: str, union: str, known: Iterable[str]) -> tuple[str, ...]:
  """Returns the groups of a union: of `A+C+S` A, C and S.

  Args:
    flag: what the user set, for the error message.
    union: groups joined by `+`, in the order of `GROUPS`.
    known: those that it may join.

  Raises:
    ValueError: another spelling, or a group that is not known.
  """
  known = [group for group in GROUPS if group in known]
  groups = tuple(union.split('+'))
  if groups != tuple(group for group in known if group in groups):
    raise ValueError(
      f'--{flag}={union} must join some of {", ".join(known)} by +, in this '
      f'order ({_LETTERS}).'
    )
  return groups
