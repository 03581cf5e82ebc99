"""SGD and Adam with TensorFlow's fused update kernels.

Momentum is v = momentum v + g, w = w - rate v. Nesterov's form is that of
PyTorch, w = w - rate (g + momentum v).
"""

from __future__ import annotations

import dataclasses

from bfl_tf.declare.settings import setting
from bfl_tf.startup import tf
from bfl_tf.training.optimizer import Optimizer, zeros_like


@dataclasses.dataclass(frozen=True)
class SGD(Optimizer):
  """Stochastic gradient descent with optional momentum."""

  momentum: float = setting(
    0.0, 'Momentum coefficient; 0 for plain SGD.', ge=0, lt=1
  )
  nesterov: bool = setting(
    False, 'Use Nesterov momentum instead of heavy-ball momentum.'
  )

  is_sgd = True

  @property
  def is_plain_sgd(self) -> bool:
    return not self.momentum

  def __post_init__(self):
    if self.nesterov and not self.momentum:
      raise ValueError('--sgd.nesterov needs --sgd.momentum above 0.')

  def slots(self, variables) -> list[tf.Variable]:
    return zeros_like(variables) if self.momentum else []

  def apply(self, variables, slots, gradients, step) -> None:
    ops, rate = tf.raw_ops, step.learning_rate
    if not self.momentum:
      for var, gradient in zip(variables, gradients):
        ops.ResourceApplyGradientDescent(
          var=var.handle, alpha=rate, delta=gradient
        )
    for var, slot, gradient in zip(variables, slots, gradients):
      ops.ResourceApplyMomentum(
        var=var.handle,
        accum=slot.handle,
        lr=rate,
        grad=gradient,
        momentum=self.momentum,
        use_nesterov=self.nesterov,
      )


@dataclasses.dataclass(frozen=True)
class Adam(Optimizer):
  """Adam (Kingma & Ba, 2015) with Keras' defaults."""

  beta_1: float = setting(0.9, 'Decay rate of the first moment.', ge=0, lt=1)
  beta_2: float = setting(0.999, 'Decay rate of the second moment.', ge=0, lt=1)
  epsilon: float = setting(
    1e-7, 'Constant added to the denominator for numerical stability.', gt=0
  )

  name = 'adam'

  def slots(self, variables) -> list[tf.Variable]:
    return zeros_like(variables) + zeros_like(variables)

  def apply(self, variables, slots, gradients, step) -> None:
    power = tf.cast(step.index + 1, tf.float32)
    beta1_power, beta2_power = self.beta_1**power, self.beta_2**power
    first, second = slots[: len(variables)], slots[len(variables) :]
    for var, m, v, gradient in zip(variables, first, second, gradients):
      tf.raw_ops.ResourceApplyAdam(
        var=var.handle,
        m=m.handle,
        v=v.handle,
        beta1_power=beta1_power,
        beta2_power=beta2_power,
        lr=step.learning_rate,
        beta1=self.beta_1,
        beta2=self.beta_2,
        epsilon=self.epsilon,
        grad=gradient,
      )
