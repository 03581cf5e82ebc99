"""Arguments and results of local training."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
from typing import Any, NamedTuple

import numpy as np

from bfl_tf import weights
from bfl_tf.startup import tf
from bfl_tf.training import inference, likelihoods


class Data(NamedTuple):
  """Raw training examples and their normalization.

  Labels are integer classes `[num_examples]`, float32 probabilities
  `[num_examples, num_classes]`, or float32 numbers `[num_examples]`.
  """

  x: np.ndarray
  y: np.ndarray
  mean: np.ndarray
  std: np.ndarray


_DETERMINISTIC = inference.Inference()


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
  """All settings that the compiled local training depends on.

  Attributes:
    optimizer: Client optimizer, an instance of one of `training.OPTIMIZERS` or
      of another `Optimizer`.
    batch_size: Mini-batch size; the last batch may be smaller.
    max_gradient_norm: Largest L2 norm of a gradient before weight decay and
      parts; 0 for no clipping.
    decay_biases: Whether weight decay includes vectors (biases, gamma and beta
      of normalizations).
    inference: Owner of the posterior with its prior and KL reduction, as of
      `Inference.compiled`.
    trains_scale: Whether to train scales; False also omits the KL term.
    for_one_site: Whether the trained model is that of one site, which is not
      sent: only the parts that fit a posterior change it at the end.
    is_eager: Whether the training runs without compilation, for a debugger.
    jit_compile: Whether XLA compiles the steps with a full batch.
  """

  optimizer: Any
  batch_size: int
  likelihood: likelihoods.Likelihood
  max_gradient_norm: float = 0.0
  weight_decay: float = 0.0
  decay_biases: bool = True
  inference: inference.Inference = _DETERMINISTIC
  augment: bool = False
  augment_padding: int = 4
  augment_border: str = 'zeros'
  trains_scale: bool = True
  parts: tuple = ()
  jit_compile: bool = False
  for_one_site: bool = False
  is_eager: bool = False


class ClientTask(NamedTuple):
  """Arguments of one client's training.

  Attributes:
    start: Broadcast weights. A worker copies them once for all clients of a
      round, so their arrays must not change.
    indices: `[num_examples]` int32, indices into the training data.
    rates: `[num_steps]` float32, learning rate of each step. The training may
      end within an epoch.
    seed: `[2]` int32.
    first_step: Number of steps already taken; if positive, the optimizer keeps
      its state from the worker's last task.
    other_examples: Number of other clients' examples in the KL's divisor.
    all_examples: Number of examples of all clients; 0 under privacy.
    shared: Result of `Server.shared` of each client part, by part name.
    memory: Memory of this client from its last round, by part name.
  """

  start: weights.Weights
  indices: np.ndarray
  rates: np.ndarray
  seed: np.ndarray
  shared: Mapping[str, Any] = {}
  memory: Mapping[str, Any] = {}
  first_step: np.int32 = np.int32(0)
  other_examples: np.int32 = np.int32(0)
  kl_weight: np.float32 = np.float32(1)
  round: np.int32 = np.int32(0)
  all_examples: np.int32 = np.int32(0)


class Step(NamedTuple):
  """Information about a step, for client parts and the optimizer.

  Attributes:
    index: Index of the step in the local training, int32, from 0.
    seed: `[2]` int32, unique to a part or the optimizer. For several draws per
      step, use `seeds.Stream(step.seed)`.
    num_examples: Number of examples of the client, float32: N_k.
    kl_examples: Divisor of the KL term, float32: N_k or N, divided by
      `kl_weight` and the weight of a part's prior.
    num_steps: Number of steps of the local training, int32.
    prior: Natural parameters of the prior of each variable (precision times
      mean, precision), for an optimizer that fits a posterior.
    round: Index of the round, int32, from 0.
    all_examples: Number of examples of all clients, float32: N; 0 under
      privacy.
    scale: `[num_loc]`, standard deviations of variational layers after the
      optimizer's update, for `Local.after`.
  """

  index: tf.Tensor
  learning_rate: tf.Tensor
  seed: tf.Tensor
  num_examples: tf.Tensor
  kl_examples: tf.Tensor = 1.0
  num_steps: tf.Tensor = 0
  prior: Any = None
  round: tf.Tensor = 0
  all_examples: tf.Tensor = 0.0
  scale: Any = None


class Trace(NamedTuple):
  """Summary of a finished training.

  Attributes:
    report: Numbers reported by parts, by column.
  """

  steps: Any
  sum_rates: Any
  loss: Any
  report: Mapping[str, Any] = {}


class Result(NamedTuple):
  """The result of a local training."""

  model: weights.Weights
  extras: Mapping[str, Any]
  memory: Mapping[str, Any]
  trace: Trace

  def followed_by(self, second: Result) -> Result:
    """Adds memory and report of a second training, whose model is not sent."""
    report = {**self.trace.report, **second.trace.report}
    return self._replace(
      memory={**self.memory, **second.memory},
      trace=self.trace._replace(report=report),
    )


def spec_of(value: Any) -> tf.TensorSpec:
  """Returns the shape and the type of an array or a number."""
  array = np.asarray(value)
  return tf.TensorSpec(array.shape, array.dtype)


def any_rows(spec: tf.TensorSpec) -> tf.TensorSpec:
  """Returns the spec with any number of rows."""
  return tf.TensorSpec([None, *spec.shape[1:]], spec.dtype)


def mismatch(value: Any, spec: tf.TensorSpec) -> str | None:
  """Returns how a value differs from a spec, or None.

  Args:
    value: An array or a NumPy number; other types are a difference.
    spec: Expected type and shape; dimensions may be None.
  """
  if not isinstance(value, np.ndarray | np.generic):
    return f'is of type {type(value).__name__}, not an array'
  if value.dtype != spec.dtype.as_numpy_dtype:
    return f'is {value.dtype}, not {spec.dtype.name}'
  if not spec.shape.is_compatible_with(value.shape):
    return f'has shape {value.shape}, not {spec.shape}'
  return None
