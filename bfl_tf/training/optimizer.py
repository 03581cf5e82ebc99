"""The base class of client optimizers."""

from __future__ import annotations

import abc
from typing import Any

from bfl_tf.declare import component
from bfl_tf.startup import tf


class Optimizer(component.Component, abc.ABC):
  """An optimizer whose state is a list of slot variables.

  The slots are set to zero when a client begins. tf_keras' optimizers are not
  suitable: their state would pass from client to client, and they do not work
  in a loop of a distribution strategy.

  An optimizer may fit a Gaussian to all weights of a network without
  variational layers. It then inherits from `Objective`, has `posterior_scope =
  'all'`, and overrides `scales`, and `begin` and `sample` if it needs them.
  `step.prior` contains the prior of each variable (precision times mean,
  precision), and `step.kl_examples` divides the KL term.

  Attributes:
    posterior_scope: 'all' if the optimizer fits a Gaussian to all weights,
      otherwise 'layers'.
    initial_scale: Standard deviation of this Gaussian before the first round.
    is_sgd: Whether a step is that of SGD, perhaps with momentum.
    is_plain_sgd: Whether a step is that of SGD without momentum.
    minimizes: Whether the optimizer minimizes the loss, without noise or a
      posterior.
    takes_any_prior: Whether precisions of the prior may be negative.
    predicts_with_mean: Whether the mean of this Gaussian, not samples, predicts
      by default.
    has_full_covariance: Whether this Gaussian has a full covariance, from
      `precision` in place of `scales`.
    curvature_samples: Number of sampled labels per example from which the
      training loop estimates the curvature after the last step.
  """

  posterior_scope: str = 'layers'
  initial_scale: float = 0.0
  curvature_samples: int = 0
  is_sgd: bool = False
  minimizes: bool = True
  takes_any_prior: bool = False
  predicts_with_mean: bool = False

  @property
  def is_plain_sgd(self) -> bool:
    return False

  @property
  def has_full_covariance(self) -> bool:
    return False

  def slots(self, variables: list) -> list:
    """Returns new non-trainable variables for the state."""
    return []

  @abc.abstractmethod
  def apply(
    self, variables: list, slots: list, gradients: list, step: Any
  ) -> None:
    """Updates the variables and the slots in place."""

  def begin(self, slots: list, scales: list) -> None:
    """Stores the broadcast standard deviations, one tensor per variable."""
    del slots, scales  # AutoGraph needs a statement.

  def sample(self, variables: list, slots: list, step: Any) -> None:
    """Sets the variables to a sample, at which the gradient is computed.

    The training loop restores the means before it calls `apply`.
    """
    del variables, slots, step

  def scales(self, slots: list, curvature: list, step: Any) -> list:
    """Returns the standard deviations that the client sends, per variable.

    Args:
      slots: Slots after the last step.
      curvature: Estimate of the diagonal of the Fisher information of a label
        at the trained weights, per variable; empty if `curvature_samples` is 0.
      step: A `training.Step` without rate and seed.
    """
    return []


def zeros_like(variables: list) -> list[tf.Variable]:
  """Returns a non-trainable variable of zeros for each variable."""
  return [
    tf.Variable(tf.zeros(v.shape, v.dtype), trainable=False) for v in variables
  ]
