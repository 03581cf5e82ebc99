"""A Keras model <-> flat vectors <-> a tfp distribution.

Four vectors say everything about a model's weights:

  loc, scale   the Gaussian posterior of its variational weights
  point        every other trainable
  buffers      what is not trained: batch normalization's moving statistics

`mean = [loc; point]` is what differences between models are taken over.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow_probability import distributions as tfd
import tf_keras


class Weights(NamedTuple):
  """The weights of one model, each a flat float32 vector.

  Attributes:
    loc: `[num_variational]`, means of the variational weights.
    scale: `[num_variational]`, their standard deviations.
    point: `[num_points]`, the other trainables.
    buffers: `[num_buffers]`, moving statistics.
  """

  loc: np.ndarray
  scale: np.ndarray
  point: np.ndarray
  buffers: np.ndarray

  @property
  def mean(self) -> np.ndarray:
    """`[num_variational + num_points]`, all trainables' means."""
    return np.concatenate([self.loc, self.point])

  @property
  def num_bytes(self) -> int:
    """Size on the wire."""
    return sum(vector.nbytes for vector in self)

  @property
  def values(self) -> np.ndarray:
    """`[loc; point; buffers]`: all that a distribution over models covers."""
    filled = [v for v in (self.loc, self.point, self.buffers) if v.size]
    return filled[0] if len(filled) == 1 else np.concatenate(filled)

  def replace_mean(self, mean: np.ndarray) -> 'Weights':
    """Returns these weights with another `mean`, rounded to float32 once."""
    mean = np.asarray(mean, np.float32)
    loc, point = np.split(mean, [self.loc.size])
    return self._replace(loc=loc, point=point)

  def replace_values(self, values: np.ndarray) -> 'Weights':
    """Returns these weights with other `values`, rounded to float32 once."""
    mean, buffers = np.split(values, [self.loc.size + self.point.size])
    return self.replace_mean(mean)._replace(
      buffers=np.asarray(buffers, np.float32)
    )


@dataclasses.dataclass(frozen=True)
class Layout:
  """Order and shapes of a model's variables inside the flat vectors."""

  loc: tuple[tf.TensorShape, ...]
  point: tuple[tf.TensorShape, ...]
  buffers: tuple[tf.TensorShape, ...]
  buffer_names: tuple[str, ...] = ()

  @classmethod
  def of(cls, model: tf_keras.Model) -> 'Layout':
    """Reads the layout of a built model."""
    groups = Variables.of(model)

    def shapes(variables):
      return tuple(variable.shape for variable in variables)

    names = tuple(v.name.split(':')[0] for v in groups.buffers)
    return cls(
      shapes(groups.loc), shapes(groups.point), shapes(groups.buffers), names
    )

  @property
  def shapes(self) -> tuple[tf.TensorShape, ...]:
    """Of the tensors in `Weights.values`."""
    return self.loc + self.point + self.buffers

  def is_variance(self) -> np.ndarray:
    """`[num_buffers]` bool: batch normalization's moving variances."""
    flags = [
      np.full(shape.num_elements(), name.endswith('moving_variance'))
      for name, shape in zip(self.buffer_names, self.buffers)
    ]
    return np.concatenate([np.zeros(0, bool), *flags])

  def size(self, group: str) -> int:
    """Length of the flat vector `loc` (= `scale`), `point` or `buffers`."""
    return sum(shape.num_elements() for shape in getattr(self, group))

  def num_trainable(self) -> int:
    """Length of `mean`."""
    return self.size('loc') + self.size('point')

  def standard(self) -> Weights:
    """Returns standard deviations of one and zeros else, for their shapes."""
    return Weights(
      np.zeros(self.size('loc'), np.float32),
      np.ones(self.size('loc'), np.float32),
      np.zeros(self.size('point'), np.float32),
      np.zeros(self.size('buffers'), np.float32),
    )

  def distribution(self, weights: Weights) -> tfd.Distribution:
    """The posterior over the variational weights, or the point it sits at.

    Returns:
      `MultivariateNormalDiag` over `R^num_variational`; for a model without
      variational weights `VectorDeterministic` over all trainables.
    """
    if weights.loc.size:
      return tfd.MultivariateNormalDiag(weights.loc, weights.scale)
    return tfd.VectorDeterministic(weights.point)


class Variables(NamedTuple):
  """A model's variables by the flat vector that they belong to."""

  loc: list[tf.Variable]
  untransformed_scale: list[tf.Variable]
  point: list[tf.Variable]
  buffers: list[tf.Variable]

  @classmethod
  def of(cls, model: tf_keras.Model) -> 'Variables':
    """Sorts the variables of a built model.

    A variational weight is a pair that TFP's layers name `*_loc` and
    `*_untransformed_scale`.

    Raises:
      ValueError: a `*_loc` without its scale.
    """
    trainable = model.trainable_variables
    locs = [v for v in trainable if _named(v, 'posterior_loc')]
    scales = [v for v in trainable if _named(v, 'untransformed_scale')]
    if [v.shape for v in locs] != [v.shape for v in scales]:
      raise ValueError(
        'Every *posterior_loc needs its *untransformed_scale of the same '
        f'shape; the model has {[v.name for v in trainable]}.'
      )
    variational = {id(v) for v in (*locs, *scales)}
    points = [v for v in trainable if id(v) not in variational]
    return cls(locs, scales, points, list(model.non_trainable_variables))

  @property
  def trainable(self) -> list[tf.Variable]:
    """What the optimizer sees, in the order loc, scale, point."""
    return [*self.loc, *self.untransformed_scale, *self.point]

  @property
  def mean(self) -> list[tf.Variable]:
    """The variables of `mean = [loc; point]`."""
    return [*self.loc, *self.point]


def _named(variable, ending: str) -> bool:
  return variable.name.split(':')[0].endswith(ending)


def flatten(tensors, dtype=tf.float32) -> tf.Tensor:
  """Joins tensors to one vector; `[0]` for none."""
  if not tensors:
    return tf.zeros([0], dtype)
  return tf.concat([tf.reshape(t, [-1]) for t in tensors], 0)


def unflatten(vector: tf.Tensor, shapes) -> list[tf.Tensor]:
  """Cuts a vector into tensors of the given shapes."""
  if not shapes:
    return []
  sizes = [shape.num_elements() for shape in shapes]
  parts = tf.split(vector, sizes)
  return [tf.reshape(p, shape) for p, shape in zip(parts, shapes)]


def read(variables: Variables) -> Weights:
  """Reads a model's weights, as tensors; works in a graph too."""
  scale = tf.nn.softplus(flatten(variables.untransformed_scale))
  return Weights(
    flatten(variables.loc),
    scale,
    flatten(variables.point),
    flatten(variables.buffers),
  )


def write(variables: Variables, model: Weights) -> None:
  """Writes weights into a model; works in a graph too."""
  assign(variables.loc, model.loc)
  assign(variables.untransformed_scale, inverse_softplus(model.scale))
  assign(variables.point, model.point)
  assign(variables.buffers, model.buffers)


def inverse_softplus(scale) -> tf.Tensor:
  """Returns the rho with `softplus(rho) = scale`; accurate for tiny scales."""
  scale = tf.convert_to_tensor(scale)
  return scale + tf.math.log(-tf.math.expm1(-scale))


def assign(variables: list[tf.Variable], vector: tf.Tensor) -> None:
  """Writes a flat vector into variables."""
  parts = unflatten(vector, [v.shape for v in variables])
  for variable, part in zip(variables, parts):
    variable.assign(part)
