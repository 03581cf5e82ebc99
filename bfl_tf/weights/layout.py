"""Which of a model's variables belong to which array, and in what order."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from bfl_tf.startup import tf, tf_keras
from bfl_tf.weights import arrays

# What TFP's layers call a posterior's variables.
_LOC, _SCALE = 'posterior_loc', 'posterior_untransformed_scale'


@dataclasses.dataclass(frozen=True)
class Layout:
  """Order and shapes of a model's variables inside the flat vectors.

  Attributes:
    loc: Shapes of the means, and of the scales, of variational weights.
    point: Shapes of the other trainable weights.
    buffers: Shapes of the variables that are not trained.
    buffer_names: Names of these variables.
    posterior_scope: Scope of the posterior, as of `Variables.of`.
    mean_names: Names of the variables in `loc` and `point`, without their
      layers' names, which differ between two models of one network.
  """

  loc: tuple[tf.TensorShape, ...]
  point: tuple[tf.TensorShape, ...]
  buffers: tuple[tf.TensorShape, ...]
  buffer_names: tuple[str, ...] = ()
  posterior_scope: str = 'layers'
  mean_names: tuple[str, ...] = ()

  @classmethod
  def of(cls, model: tf_keras.Model, posterior_scope: str = 'layers') -> Layout:
    """Reads the layout of a built model; arguments as of `Variables.of`."""
    groups = Variables.of(model, posterior_scope)

    def shapes(variables):
      return tuple(variable.shape for variable in variables)

    names = tuple(v.name.split(':')[0] for v in groups.buffers)
    return cls(
      shapes(groups.loc),
      shapes(groups.point),
      shapes(groups.buffers),
      names,
      posterior_scope,
      tuple(variable.name.rpartition('/')[2] for variable in groups.mean),
    )

  @property
  def shapes(self) -> tuple[tf.TensorShape, ...]:
    """Shapes of the tensors in `Weights.values`."""
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

  def standard(self) -> arrays.Weights:
    """Returns standard deviations of one and zeros else, for their shapes."""
    return arrays.Weights(
      np.zeros(self.size('loc'), np.float32),
      np.ones(self.size('loc'), np.float32),
      np.zeros(self.size('point'), np.float32),
      np.zeros(self.size('buffers'), np.float32),
    )


class Variables(NamedTuple):
  """A model's variables by the flat vector that they belong to."""

  loc: list[tf.Variable]
  untransformed_scale: list[tf.Variable]
  point: list[tf.Variable]
  buffers: list[tf.Variable]

  @classmethod
  def of(
    cls, model: tf_keras.Model, posterior_scope: str = 'layers'
  ) -> Variables:
    """Sorts the variables of a built model.

    Args:
      model: Model whose variational weights, if any, are pairs of variables
        that TFP's layers name `*_loc` and `*_untransformed_scale`.
      posterior_scope: `layers`: these pairs are the random weights; `all`: all
        trainables are, and no variable holds their scale.

    Raises:
      ValueError: a scale without its `*_loc`; `all` of a network with
        variational layers; a variable of another type than float32.
    """
    trainable = model.trainable_variables
    scales = [v for v in trainable if _stem(v, _SCALE)]
    # A singular posterior of TFP's (its default for biases) is a point.
    stems = {_stem(v, _SCALE) for v in scales}
    locs = [v for v in trainable if _stem(v, _LOC) in stems - {''}]
    buffers = list(model.non_trainable_variables)
    _check_types([*trainable, *buffers])
    if [v.shape for v in locs] != [v.shape for v in scales]:
      raise ValueError(
        f'Every *{_SCALE} needs its *{_LOC} of the same '
        f'shape; the model has {[v.name for v in trainable]}.'
      )
    if posterior_scope == 'all':
      if locs:
        raise ValueError(
          'A method that gives all weights a posterior needs a network '
          'without variational layers: use a --variant other than flipout.'
        )
      return cls(list(trainable), [], [], buffers)
    variational = {id(v) for v in (*locs, *scales)}
    points = [v for v in trainable if id(v) not in variational]
    return cls(locs, scales, points, buffers)

  @property
  def trainable(self) -> list[tf.Variable]:
    """Variables that the optimizer changes, in the order loc, scale, point."""
    return [*self.loc, *self.untransformed_scale, *self.point]

  @property
  def mean(self) -> list[tf.Variable]:
    """The variables of `mean = [loc; point]`."""
    return [*self.loc, *self.point]


def _check_types(variables):
  for variable in variables:
    if variable.dtype != tf.float32:
      raise ValueError(
        f'The network has the variable {variable.name.split(":")[0]} of type '
        f'{variable.dtype.name}; all variables must be float32 (pass mean= and '
        'variance= to a Normalization layer, in place of adapt).'
      )


def _stem(variable, ending: str) -> str:
  name = variable.name.split(':')[0]
  return name.removesuffix(ending) if name.endswith(ending) else ''


def flatten(tensors) -> tf.Tensor:
  """Joins tensors to one vector; `[0]` for none."""
  if not tensors:
    return tf.zeros([0])
  return tf.concat([tf.reshape(t, [-1]) for t in tensors], 0)


def unflatten(vector: tf.Tensor, shapes) -> list[tf.Tensor]:
  """Cuts a vector into tensors of the given shapes."""
  if not shapes:
    return []
  sizes = [shape.num_elements() for shape in shapes]
  parts = tf.split(vector, sizes)
  return [tf.reshape(p, shape) for p, shape in zip(parts, shapes)]


def read(
  variables: Variables, like: arrays.Weights | None = None
) -> arrays.Weights:
  """Reads a model's weights, as tensors; works in a graph too.

  Args:
    variables: Variables of the model.
    like: gives scale and factor where no variable holds a scale; without it
      they are 0.
  """
  loc, point, buffers = map(
    flatten, (variables.loc, variables.point, variables.buffers)
  )
  if variables.untransformed_scale:
    scale = tf.nn.softplus(flatten(variables.untransformed_scale))
  else:
    scale = tf.zeros_like(loc)
    if like is not None:
      return arrays.Weights(loc, like.scale, point, buffers, like.factor)
  return arrays.Weights(loc, scale, point, buffers)


def write(variables: Variables, model: arrays.Weights) -> None:
  """Writes weights into a model; works in a graph too.

  Variational layers, whose weights are independent, take the marginal scale.
  """
  assign(variables.loc, model.loc)
  if variables.untransformed_scale:
    untransformed = inverse_softplus(arrays.marginal_scale(model))
    assign(variables.untransformed_scale, untransformed)
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
