"""Local layers: chosen weights stay on the client and are never averaged.

A client begins each round with its own chosen weights and the broadcast's other
weights. It sends the broadcast's values for the chosen weights, so that the
global model keeps their initial values. FedBN keeps batch normalization: gamma,
beta and the moving statistics. FedPer keeps the last layer, the head.

References:
  X. Li et al. FedBN: Federated learning on non-IID features via local batch
  normalization. ICLR 2021.
  M. G. Arivazhagan et al. Federated learning with personalization layers.
  arXiv:1912.00818.
"""

from __future__ import annotations

import dataclasses
import functools
import re

import numpy as np

from bfl_tf import training, weights
from bfl_tf.declare.settings import setting
from bfl_tf.startup import tf

_NOTHING = weights.Layout((), (), ())
_OF_NORMALIZATION = r'\d+/(gamma|beta)'


@dataclasses.dataclass(frozen=True)
class LocalLayers(training.Part):
  """Keeps chosen weights of the network on the client.

  Attributes:
    layout: Layout of the model, set by `with_layout`.
  """

  layers: str = setting(
    'batch_norm',
    'Weights that stay on the client: batch_norm, head for the last layer, '
    'or a regular expression for names such as 0/kernel, the kernel of the '
    'first layer.',
  )
  layout: weights.Layout = _NOTHING

  name = 'local_layers'
  changes_start = True
  replaces_model = True
  trains_global_model = False

  @property
  def keeps_batch_norm(self) -> bool:
    return self.layers == 'batch_norm'

  def with_layout(self, layout):
    part = dataclasses.replace(self, layout=layout)
    num_chosen = len(part._places)
    if num_chosen in (0, layout.num_trainable()):
      which = 'all' if num_chosen else 'none'
      raise ValueError(
        f'--local_layers.layers={self.layers} matches {which} of the weights '
        f'{", ".join(layout.names())}: choose some of them.'
      )
    return part

  def init_memory(self, model):
    return self._chosen(model)

  def initial(self, start, shared, memory):
    return self._with(start, memory)

  def begin(self, start, shared, memory):
    return self._chosen(start)

  def finish(self, model, carry, trace):
    return self._with(model, carry), None, self._chosen(model)

  def personal(self, model, memory):
    return self._with(model, memory)

  def _chosen(self, model):
    """Returns the values that stay on the client."""
    take = tf.gather if tf.is_tensor(model.loc) else np.take
    kept = {
      'mean': take(model.mean, self._places),
      'scale': take(model.scale, self._places_of_scale(model)),
    }
    return kept | ({'buffers': model.buffers} if self.keeps_batch_norm else {})

  def _with(self, model, values):
    """Returns the model with other values of the chosen weights."""
    mean = _put(model.mean, self._places, values['mean'])
    places = self._places_of_scale(model)
    scale = _put(model.scale, places, values['scale'])
    buffers = values.get('buffers', model.buffers)
    return model.replace_mean(mean)._replace(scale=scale, buffers=buffers)

  def _places_of_scale(self, model):
    # The means of variational layers are first.
    return self._places[self._places < model.loc.shape[0]]

  @functools.cached_property
  def _places(self) -> np.ndarray:
    """Indices of the means that stay on the client."""
    layout = self.layout
    pattern = {
      'batch_norm': _OF_NORMALIZATION,
      'head': f'{max(layout.mean_layers, default=0)}/.*',
    }.get(self.layers, self.layers)
    shapes = layout.loc + layout.point
    mask = np.repeat(
      [bool(re.fullmatch(pattern, name)) for name in layout.names()],
      [shape.num_elements() for shape in shapes],
    )
    return np.flatnonzero(mask)


def _put(values, places, new):
  """Returns values `[n]` with new ones at some places; NumPy or tensors."""
  if tf.is_tensor(values):
    return tf.tensor_scatter_nd_update(values, places[:, None], new)
  values = np.array(values)
  values[places] = new
  return values
