"""Ensembles of a round's models, in groups.

  A   the average of the clients' weights
  C   the clients' models
  S   samples from a distribution over global models
  B   the clients' models, whose predictions are interpolated between their
      mixture and their product

The part alone only scores the ensembles (FedBE, Figure 3). Distillation uses
their groups as teachers.

References:
  H. Chen, W. Chao. FedBE. ICLR 2021, section 3.3: groups A, C and S.
  M. Hasan et al. Calibrated one round federated learning with Bayesian
  inference in the predictive space. AAAI 2024: group B (beta-Predictive Bayes).
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from typing import Any

import numpy as np

from bfl_tf import seeds, weights
from bfl_tf.declare.settings import setting
from bfl_tf.parts import Keep, Outcome, Server, ServerContext
from bfl_tf.server import posteriors, teacher_posteriors

# Groups whose unions are scored too; B is scored alone.
GROUPS = ('A', 'C', 'S')
ALL = (*GROUPS, 'B')
_LETTERS = (
  'A: average, C: clients, S: samples, B: mixture and product of clients'
)


@dataclasses.dataclass(frozen=True)
class Ensemble(Server):
  """Creates the groups, which the evaluation of the round scores."""

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

  def check(self, facts):
    groups = self.group_names
    if self.fits_beta:
      facts.need('B' in groups, 'group B for fits_beta: --ensemble.groups=B')
      facts.need_server_examples(labels=True)
    is_pooled = isinstance(self.posterior, teacher_posteriors.PooledPosterior)
    facts.need(
      not ('S' in groups and is_pooled)
      or facts.model is None
      or facts.model.loc.shape[0],
      'a posterior over weights for --ensemble.posterior=pooled: set '
      '--variant=flipout, --client_optimizer=ivon or laplace, or '
      '--client_parts=swag; or choose gaussian or dirichlet_weights',
    )

  @property
  def group_names(self) -> tuple[str, ...]:
    union, _, last = self.groups.rpartition('+')
    if last != 'B':
      return groups_of('ensemble.groups', self.groups, GROUPS)
    others = groups_of('ensemble.groups', union, GROUPS) if union else ()
    return (*others, 'B')

  def terms(self, update, weight, broadcast):
    terms: dict[str, Any] = {}
    if 'S' in self.group_names:
      terms |= self.posterior.terms(update, weight, broadcast)
    if {'B', 'C'} & {*self.group_names}:
      terms |= {'models': Keep(update.model), 'weights': Keep(weight)}
    return terms

  def step(self, model, sums, slot, ctx):
    groups, report = self.make(sums, ctx, ctx.seed)
    return Outcome(model, slot, report, groups)

  def make(
    self, sums: Mapping[str, Any], ctx: ServerContext, seed: np.ndarray
  ) -> tuple[dict[str, Sequence[weights.Weights]], dict[str, float]]:
    """Returns the models by group, and columns of `metrics.csv`."""
    groups: dict[str, Sequence[weights.Weights]] = {}
    report: dict[str, float] = {}
    tools = ctx.tools
    if 'A' in self.group_names:
      groups['A'] = (ctx.pooled,)
    if {'B', 'C'} & {*self.group_names}:
      models, of_sizes = sums['models'], np.array(sums['weights'])
      shares = of_sizes / of_sizes.sum() if self.weighted else None
    if 'C' in self.group_names:
      groups['C'] = posteriors.Models(len(models), models.__getitem__, shares)
    if 'B' in self.group_names:
      groups['B'] = posteriors.Models(len(models), models.__getitem__)
    if 'S' in self.group_names:
      draws = self._draws(sums, ctx, seeds.child(seed, 0))
      # Recalibration replaces the sampled variances.
      if draws.is_variance.any() and not tools.recalibrates:
        report['sampled_floored_fraction'] = draws.floored_fraction()
      groups['S'] = draws
    groups = {
      name: tools.recalibrated(group, seeds.child(seed, 1 + ALL.index(name)))
      for name, group in groups.items()
    }
    if 'B' in groups:
      report['beta'] = self.beta
      if self.fits_beta:
        report['beta'] = self._best_beta(groups['B'], tools, seed)
      own = groups['B']
      groups['B'] = posteriors.Models(
        len(own), own.__getitem__, beta=report['beta']
      )
    return groups, report

  def _best_beta(self, group, tools, seed):
    """Returns the beta with the largest likelihood of the server's labels."""
    betas = {'B': self.beta}
    mixtures, _ = tools.mixtures({'B': group}, betas, seeds.child(seed, 5))
    if 'B' not in mixtures:
      return self.beta
    return mixtures.best_beta('B', np.asarray(tools.server_labels))

  def _draws(self, sums, ctx, seed):
    distribution, like = self.posterior.distribution(
      ctx.pooled, sums, ctx.broadcast
    )
    return posteriors.Draws(
      distribution,
      like,
      ctx.tools.layout.is_variance(),
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
