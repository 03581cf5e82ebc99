"""Order and shapes of a model's variables in the flat vectors."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from bfl_tf.startup import tf, tf_keras
from bfl_tf.weights import arrays

# Names of a posterior's variables in TFP's layers.
_LOC, _SCALE = 'posterior_loc', 'posterior_untransformed_scale'


@dataclasses.dataclass(frozen=True)
class Layout:
  """Order and shapes of a model's variables inside the flat vectors.

  Attributes:
    loc: Shapes of the means, and of the scales, of variational weights.
    mean_names: Names of the variables in `loc` and `point`, without the names
      of layers, which differ between models of one network.
    mean_layers: Number of the layer of each of these variables, from 0.
  """

  loc: tuple[tf.TensorShape, ...]
  point: tuple[tf.TensorShape, ...]
  buffers: tuple[tf.TensorShape, ...]
  buffer_names: tuple[str, ...] = ()
  posterior_scope: str = 'layers'
  mean_names: tuple[str, ...] = ()
  mean_layers: tuple[int, ...] = ()

  @classmethod
  def of(cls, model: tf_keras.Model, posterior_scope: str = 'layers') -> Layout:
    """Reads the layout of a built model; arguments as in `Variables.of`."""
    groups = Variables.of(model, posterior_scope)

    def shapes(variables):
      return tuple(variable.shape for variable in variables)

    names = tuple(v.name.split(':')[0] for v in groups.buffers)
    layers = [v.name.rpartition('/')[0] for v in model.trainable_variables]
    order = list(dict.fromkeys(layers))
    return cls(
      shapes(groups.loc),
      shapes(groups.point),
      shapes(groups.buffers),
      names,
      posterior_scope,
      tuple(variable.name.rpartition('/')[2] for variable in groups.mean),
      tuple(order.index(v.name.rpartition('/')[0]) for v in groups.mean),
    )

  def names(self) -> list[str]:
    """Returns `LAYER/NAME` of each variable of `mean`, such as `0/kernel`."""
    return [
      f'{layer}/{name.split(":")[0].removesuffix("_posterior_loc")}'
      for layer, name in zip(self.mean_layers, self.mean_names)
    ]

  @property
  def shapes(self) -> tuple[tf.TensorShape, ...]:
    """Shapes of the tensors in `Weights.values`."""
    return self.loc + self.point + self.buffers

  def is_variance(self) -> np.ndarray:
    """Returns the mask of moving variances, `[num_buffers]` bool."""
    flags = [
      np.full(shape.num_elements(), name.endswith('moving_variance'))
      for name, shape in zip(self.buffer_names, self.buffers)
    ]
    return np.concatenate([np.zeros(0, bool), *flags])

  def size(self, group: str) -> int:
    """Returns the length of `loc` (= `scale`), `point` or `buffers`."""
    return sum(shape.num_elements() for shape in getattr(self, group))

  def num_trainable(self) -> int:
    """Returns the length of `mean`."""
    return self.size('loc') + self.size('point')

  def standard(self) -> arrays.Weights:
    """Returns placeholder weights with scales of 1 and other values of 0."""
    return arrays.Weights(
      np.zeros(self.size('loc'), np.float32),
      np.ones(self.size('loc'), np.float32),
      np.zeros(self.size('point'), np.float32),
      np.zeros(self.size('buffers'), np.float32),
    )


class Variables(NamedTuple):
  """The variables of a model, by flat vector."""

  loc: list[tf.Variable]
  untransformed_scale: list[tf.Variable]
  point: list[tf.Variable]
  buffers: list[tf.Variable]

  @classmethod
  def of(
    cls, model: tf_keras.Model, posterior_scope: str = 'layers'
  ) -> Variables:
    """Returns the variables of a built model.

    Args:
      model: Model whose variational weights, if any, are pairs of variables
        with names `*_loc` and `*_untransformed_scale`, as in TFP's layers.
      posterior_scope: Random weights: `layers` for these pairs, `all` for all
        trainable weights, without variables for scales.

    Raises:
      ValueError: A scale has no `*_loc`, or the network has variational layers
        with `all`.
    """
    trainable = model.trainable_variables
    scales = [v for v in trainable if _stem(v, _SCALE)]
    # TFP's default for biases has a loc without a scale: it is deterministic.
    stems = {_stem(v, _SCALE) for v in scales}
    locs = [v for v in trainable if _stem(v, _LOC) in stems - {''}]
    buffers = list(model.non_trainable_variables)
    if [v.shape for v in locs] != [v.shape for v in scales]:
      raise ValueError(
        f'Every *{_SCALE} needs its *{_LOC} of the same '
        f'shape; the model has {[v.name for v in trainable]}.'
      )
    if posterior_scope == 'all':
      if locs:
        raise ValueError(
          'A posterior over all weights needs a network without variational '
          'layers.'
        )
      return cls(list(trainable), [], [], buffers)
    variational = {id(v) for v in (*locs, *scales)}
    points = [v for v in trainable if id(v) not in variational]
    return cls(locs, scales, points, buffers)

  @property
  def trainable(self) -> list[tf.Variable]:
    """Trainable variables, in the order loc, scale, point."""
    return [*self.loc, *self.untransformed_scale, *self.point]

  @property
  def mean(self) -> list[tf.Variable]:
    """Variables of `mean = [loc; point]`."""
    return [*self.loc, *self.point]


def _stem(variable, ending: str) -> str:
  name = variable.name.split(':')[0]
  return name.removesuffix(ending) if name.endswith(ending) else ''


def flatten(tensors) -> tf.Tensor:
  """Joins tensors into one vector, which is empty without tensors."""
  if not tensors:
    return tf.zeros([0])
  return tf.concat([tf.reshape(t, [-1]) for t in tensors], 0)


def unflatten(vector: tf.Tensor, shapes) -> list[tf.Tensor]:
  """Splits a vector into tensors of the given shapes."""
  if not shapes:
    return []
  sizes = [shape.num_elements() for shape in shapes]
  parts = tf.split(vector, sizes)
  return [tf.reshape(p, shape) for p, shape in zip(parts, shapes)]


def read(
  variables: Variables, like: arrays.Weights | None = None
) -> arrays.Weights:
  """Returns a model's weights as tensors; also works in a graph.

  Args:
    like: Weights that provide scale and factor if no variable contains a scale.
      Without them, the scale is 0.
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
  """Writes weights into a model; also works in a graph.

  Variational layers get the marginal scale, because their weights are
  independent.
  """
  assign(variables.loc, model.loc)
  if variables.untransformed_scale:
    untransformed = inverse_softplus(arrays.marginal_scale(model))
    assign(variables.untransformed_scale, untransformed)
  assign(variables.point, model.point)
  assign(variables.buffers, model.buffers)


def inverse_softplus(scale) -> tf.Tensor:
  """Returns rho with `softplus(rho) = scale`; accurate for tiny scales."""
  scale = tf.convert_to_tensor(scale)
  return scale + tf.math.log(-tf.math.expm1(-scale))


def assign(variables: list[tf.Variable], vector: tf.Tensor) -> None:
  """Writes a flat vector into variables."""
  parts = unflatten(vector, [v.shape for v in variables])
  for variable, part in zip(variables, parts):
    variable.assign(part)
