"""The posterior of a client: its owner, its prior, its samples and its scales.

A posterior belongs to the variational layers (Flipout), to the optimizer (IVON,
Laplace) or to a client part (SWAG). A client without an owner trains
deterministic weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
import dataclasses
from typing import Any

import numpy as np

from bfl_tf import parts, weights
from bfl_tf.startup import tf
from bfl_tf.training import objectives


@dataclasses.dataclass(frozen=True)
class Inference:
  """Inference in variational layers, by a client part, or none.

  Attributes:
    role: Flag that selects the owner of the posterior, such as `variant`; empty
      without a posterior.
    has_random_layers: Whether two predictions with the same weights differ:
      layers draw weights or dropout masks.
    by_samples: Whether samples of the posterior, not its mean, predict.
    is_linearized: Whether the model, linearized at the mean, predicts with
      samples of the posterior.
  """

  objective: objectives.Objective = dataclasses.field(
    default_factory=objectives.Objective
  )
  scope: str = 'layers'
  role: str = ''
  owner: str = ''
  has_random_layers: bool = False
  by_samples: bool = True
  is_linearized: bool = False

  @property
  def has_prior(self) -> bool:
    """Whether the owner has the settings of the objective."""
    return self.role in ('variant', 'client_optimizer')

  @property
  def keeps_scale(self) -> bool:
    """Whether a client's training begins at the scales of the broadcast."""
    return self.role == 'variant'

  def factor_rank(self, num_loc: int) -> int:
    """Returns the rank of the factor that the owner fits, without parts."""
    return 0

  def num_samples(self, wanted: int) -> int:
    """Returns the number of samples that a posterior needs: `wanted`, or 1."""
    is_random = self.scope == 'all' and self.by_samples
    is_random |= self.is_linearized
    return wanted if is_random else self.num_layer_samples(wanted)

  def num_layer_samples(self, wanted: int) -> int:
    """Returns `wanted` if layers are random, or 1: all would be equal."""
    return wanted if self.has_random_layers and self.by_samples else 1

  def with_objective(self, **changes: Any) -> Inference:
    """Returns the inference with other settings of the objective."""
    objective = dataclasses.replace(self.objective, **changes)
    return dataclasses.replace(self, objective=objective)

  def compiled(self) -> Inference:
    """Returns the part in the compiled graph; the rest are its inputs."""
    return dataclasses.replace(self, objective=self.objective.compiled())

  def initial(self, start: weights.Weights) -> weights.Weights:
    """Returns the posterior before the first round.

    A posterior over all weights starts as a point mass, or with the initial
    scale of the optimizer.
    """
    return start.at_a_point() if self.scope == 'all' else start

  def begin(self, slots: list, trained: list, start: weights.Weights) -> None:
    """Stores the broadcast posterior in the optimizer's slots."""
    del slots, trained, start  # AutoGraph needs a statement.

  def prior(self, given: Any, start: Any, trained: list) -> Any:
    """Returns the client's prior.

    Args:
      given: `parts.Natural` or `parts.Normal` from a client part, or None.
      start: Broadcast, which is not used with a `Normal`.
    """
    if isinstance(given, parts.Normal):
      return objectives.Prior(*given)
    if given is not None:
      own = weights.of_natural(given.eta, start)
      return objectives.Prior(own.loc, own.scale)
    if self.objective.update_prior:
      return objectives.Prior(start.loc, weights.marginal_scale(start))
    scale = tf.constant(self.objective.prior_scale, tf.float32)
    return objectives.Prior(tf.constant(0.0), scale)

  def sample(self, trained: list, slots: list, step: Any) -> list:
    """Sets the variables to a sample; returns their means to `restore`."""
    return []

  def restore(self, trained: list, means: list) -> None:
    """Sets the variables to their means."""
    for variable, mean in zip(trained, means):
      variable.assign(mean)

  def divergence(
    self, variables: weights.Variables, scale: Any, prior: Any
  ) -> Any:
    """Returns the KL term of variational layers in nats, times N_k / T.

    Args:
      scale: `[num_loc]`, standard deviations.
    """
    loc = weights.flatten(variables.loc)
    if self.objective.kl_reduction == 'tied':
      prior = prior._replace(loc=loc)
    shares = None
    if self.objective.kl_reduction == 'mean':
      sizes = np.array([v.shape.num_elements() for v in variables.loc])
      shares = tf.constant(np.repeat(1.0 / sizes, sizes), tf.float32)
    return objectives.divergence(loc, scale, prior, shares)

  def bound(self, variables: weights.Variables) -> None:
    """Applies the upper bound on the scales of variational layers."""
    largest = self.objective.max_scale
    for rho in variables.untransformed_scale if largest else ():
      rho.assign(tf.minimum(rho, weights.inverse_softplus(largest)))

  def posterior(
    self,
    model: weights.Weights,
    slots: list,
    step: Any,
    curvature: Callable[[int], list],
    fisher: Callable[[], Any],
  ) -> weights.Weights:
    """Returns the trained model with the scales that the client sends.

    Args:
      step: A `training.Step` with the prior, without rate and seed.
      curvature: Function that estimates the diagonal of the Fisher information
        of a label by variable, from a number of samples per example.
      fisher: Function that computes the whole matrix.
    """
    return model


@dataclasses.dataclass(frozen=True)
class OptimizerInference(Inference):
  """Inference by an optimizer with a Gaussian over all weights."""

  optimizer: Any = None

  @property
  def keeps_scale(self):
    return not self.optimizer.curvature_samples

  def initial(self, start):
    at_a_point = start.at_a_point()
    first = np.float32(self.optimizer.initial_scale)
    return at_a_point._replace(scale=np.maximum(at_a_point.scale, first))

  def begin(self, slots, trained, start):
    shapes = [variable.shape for variable in trained]
    scales = weights.unflatten(weights.marginal_scale(start), shapes)
    self.optimizer.begin(slots, scales)

  def prior(self, given, start, trained):
    if given is None and not self.objective.update_prior:
      return [(0.0, self.objective.prior_scale**-2)] * len(trained)
    if isinstance(given, parts.Natural):
      eta = given.eta
    else:  # A `Normal`, or the broadcast with its marginal variances.
      if given is None:
        given = start._replace(scale=weights.marginal_scale(start))
      eta = weights.natural(given)
    shapes = [variable.shape for variable in trained]
    both = tf.unstack(tf.cast(eta, tf.float32))
    return list(zip(*(weights.unflatten(v, shapes) for v in both)))

  def sample(self, trained, slots, step):
    means = [tf.identity(variable) for variable in trained]
    self.optimizer.sample(trained, slots, step)
    return means

  def factor_rank(self, num_loc):
    return num_loc if self.optimizer.has_full_covariance else 0

  def posterior(self, model, slots, step, curvature, fisher):
    if self.optimizer.has_full_covariance:
      precision = self.optimizer.precision(slots, fisher(), step)
      return weights.of_precision(precision, model)
    samples = self.optimizer.curvature_samples
    estimate = curvature(samples) if samples else []
    scale = weights.flatten(self.optimizer.scales(slots, estimate, step))
    return model._replace(scale=scale, factor=model.factor[:0])


def resolve(
  variant: Any,
  optimizer: Any,
  members: Iterable[tuple[str, str, Any]],
  predict_with: str = 'auto',
) -> Inference:
  """Returns the inference of a client.

  Args:
    members: Role, name and instance of each component that may own a posterior:
      the variant, the optimizer and the client parts.
    predict_with: 'samples' or 'mean' of the posterior, or 'linearized'; 'auto'
      is 'samples', unless the owner states `predicts_with_mean`.
  """
  owners = [
    (role, name, member)
    for role, name, member in members
    if isinstance(member, objectives.Objective)
    or getattr(member, 'posterior_scope', 'layers') == 'all'
    or getattr(member, 'fits_posterior', False)
  ]
  if len(owners) > 1:
    flags = ' and '.join(f'--{role}={name}' for role, name, _ in owners)
    raise ValueError(
      f'{flags} would each fit the posterior of a client: remove one of them. '
      'With --variant=deterministic or mc_dropout, layers have no posterior.'
    )
  is_random = variant.is_random
  linearized = predict_with == 'linearized'
  if not owners:
    if linearized:
      raise ValueError(
        '--predict_with=linearized needs a Gaussian posterior: set '
        '--variant=flipout, --client_optimizer=ivon or laplace, or '
        '--client_parts=swag.'
      )
    return Inference(
      has_random_layers=is_random, by_samples=predict_with != 'mean'
    )
  ((role, name, member),) = owners
  by_mean = predict_with in ('mean', 'linearized') or (
    predict_with == 'auto' and getattr(member, 'predicts_with_mean', False)
  )
  known: dict[str, Any] = {
    'role': role,
    'owner': name,
    'has_random_layers': is_random,
    'by_samples': not by_mean,
    'is_linearized': linearized,
  }
  if member is optimizer:
    return OptimizerInference(member, 'all', optimizer=optimizer, **known)
  if role == 'client_parts':
    return Inference(scope='all', **known)
  return Inference(member, **known)
