"""Arguments and results of local training."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
from typing import Any, NamedTuple

import numpy as np

from bfl_tf import weights
from bfl_tf.startup import tf
from bfl_tf.training import objectives


class Data(NamedTuple):
  """Training examples as the graph sees them: raw, and how to normalise.

  Labels are integer classes `[num_examples]`, or float32 probabilities
  `[num_examples, num_classes]`.
  """

  x: np.ndarray
  y: np.ndarray
  mean: np.ndarray
  std: np.ndarray


_STANDARD = objectives.Objective()


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
  """Everything that the compiled local training depends on.

  Attributes:
    optimizer: one of `training.OPTIMIZERS`, or like them.
    batch_size: examples a step; the last partial batch is kept.
    max_gradient_norm: the L2 norm that a step's whole gradient is clipped to,
      before weight decay and parts; not at all where 0.
    weight_decay: times the mean, added to the gradient before momentum.
    decay_biases: False leaves vectors out: biases, normalization's gamma and
      beta.
    objective: The prior and the KL reduction, as of `Objective.compiled`.
    augment: pad, crop, flip.
    augment_padding: pixels on each side before the crop.
    augment_border: one of `preprocessing.PADS`.
    step_decay: factor on the learning rate at each step of a round.
    epoch_decay: factor every `epoch_decay_every` epochs of a round.
    epoch_decay_every: Number of epochs between two factors `epoch_decay`.
    cycle_length: steps in which the rate falls linearly to `cycle_floor` times
      itself, before it jumps back; 0 for no cycles.
    cycle_floor: Factor on the learning rate at the end of a cycle.
    trains_scale: False leaves scales as they are and the KL term out.
    posterior_scope: which weights are random, as of `weights.Variables.of`.
    parts: client parts (`bfl_tf.clients`), in order.
  """

  optimizer: Any
  batch_size: int
  max_gradient_norm: float = 0.0
  weight_decay: float = 0.0
  decay_biases: bool = True
  objective: objectives.Objective = _STANDARD
  augment: bool = False
  augment_padding: int = 4
  augment_border: str = 'zeros'
  step_decay: float = 1.0
  epoch_decay: float = 1.0
  epoch_decay_every: int = 1
  cycle_length: int = 0
  cycle_floor: float = 1.0
  trains_scale: bool = True
  posterior_scope: str = 'layers'
  parts: tuple = ()


class ClientTask(NamedTuple):
  """One client's training, as the compiled function takes it.

  Attributes:
    start: the broadcast weights.
    indices: `[num_examples]` int32 into the training data.
    epochs: passes over them.
    learning_rate: Learning rate of the first step.
    seed: `[2]` int32.
    first_step: steps already taken; where positive, the optimizer goes on from
      the state in which the worker's last task left it.
    other_examples: Number of examples of other clients that the KL term is
      divided by, besides the client's own.
    kl_weight: Factor on the KL term in this round: temperature and annealing.
    shared: Slot of the server stage that a part needs, by part name.
    memory: Memory of this client from its last round, by part name.
  """

  start: weights.Weights
  indices: np.ndarray
  epochs: np.int32
  learning_rate: np.float32
  seed: np.ndarray
  shared: Mapping[str, Any] = {}
  memory: Mapping[str, Any] = {}
  first_step: np.int32 = np.int32(0)
  other_examples: np.int32 = np.int32(0)
  kl_weight: np.float32 = np.float32(1)


class Step(NamedTuple):
  """Information about a step, for client parts and the optimizer.

  Attributes:
    index: Index of the step, from 0.
    learning_rate: Learning rate of this step.
    seed: `[2]` int32, of a part's own or the optimizer's; who draws twice a
      step names its draws by `seeds.Stream(step.seed)`.
    num_examples: Number of examples of the client, float32: N_k.
    kl_examples: Divisor of the KL term, float32: N_k or N, over `kl_weight` and
      the weight of a prior from a part.
    num_steps: index of the first step after this training.
    prior: Natural parameters of the prior of each variable (precision times
      mean, precision), for an optimizer that fits a posterior.
  """

  index: tf.Tensor
  learning_rate: tf.Tensor
  seed: tf.Tensor
  num_examples: tf.Tensor
  kl_examples: tf.Tensor = 1.0
  num_steps: tf.Tensor = 0
  prior: Any = None


class Trace(NamedTuple):
  """Summary of a finished training.

  Attributes:
    steps: Number of steps.
    sum_rates: the sum of their learning rates.
    loss: Mean loss in nats.
    report: numbers that parts report, by column.
  """

  steps: Any
  sum_rates: Any
  loss: Any
  report: Mapping[str, Any] = {}


class Result(NamedTuple):
  """The result of a local training.

  Attributes:
    model: Trained weights.
    extras: Vectors to send, by part name.
    memory: Memory to keep, by part name.
    trace: Number of steps, sum of learning rates and mean loss.
  """

  model: weights.Weights
  extras: Mapping[str, Any]
  memory: Mapping[str, Any]
  trace: Trace


def spec_of(value: Any) -> tf.TensorSpec:
  """Returns the shape and the type of an array or a number."""
  array = np.asarray(value)
  return tf.TensorSpec(array.shape, array.dtype)


def any_rows(spec: tf.TensorSpec) -> tf.TensorSpec:
  """Returns the spec of as many rows as there may be."""
  return tf.TensorSpec([None, *spec.shape[1:]], spec.dtype)


def mismatch(value: Any, spec: tf.TensorSpec) -> str | None:
  """Says how a value differs from what is wanted, or returns None.

  Args:
    value: an array or a NumPy number; anything else is a difference.
    spec: Expected type, and shape where it is known.
  """
  if not isinstance(value, np.ndarray | np.generic):
    return f'is of type {type(value).__name__}, not an array'
  if value.dtype != spec.dtype.as_numpy_dtype:
    return f'is {value.dtype}, not {spec.dtype.name}'
  if not spec.shape.is_compatible_with(value.shape):
    return f'has shape {value.shape}, not {spec.shape}'
  return None
