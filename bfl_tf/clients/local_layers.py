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
import re
from typing import Annotated

import numpy as np

from bfl_tf import training, weights
from bfl_tf.declare.settings import Setting
from bfl_tf.startup import tf

_NOTHING = weights.Layout((), (), ())
_OF_NORMALIZATION = r'\d+/(gamma|beta)'


@dataclasses.dataclass(frozen=True)
class LocalLayers(training.Part):
  """Keeps chosen weights of the network on the client.

  Attributes:
    layout: Layout of the model, set by `with_layout`.
  """

  layers: Annotated[
    str,
    Setting(
      'Weights that stay on the client: batch_norm, head for the last layer, '
      'or a regular expression for names such as 0/kernel, the kernel of the '
      'first layer.'
    ),
  ] = 'batch_norm'
  layout: weights.Layout = _NOTHING

  name = 'local_layers'
  changes_start = True
  replaces_model = True

  @property
  def keeps_batch_norm(self) -> bool:
    return self.layers == 'batch_norm'

  def with_layout(self, layout):
    part = dataclasses.replace(self, layout=layout)
    chosen = part._mask()
    if chosen.all() or not chosen.any():
      which = 'all' if chosen.all() else 'none'
      raise ValueError(
        f'--local_layers.layers={self.layers} matches {which} of the weights '
        f'{", ".join(layout.names())}: choose some of them.'
      )
    return part

  def init_memory(self, model):
    return _values(model)

  def initial(self, start, shared, memory):
    return self._with(start, memory)

  def begin(self, start, shared, memory):
    return _values(start)

  def finish(self, model, carry, trace):
    return self._with(model, carry), None, _values(model)

  def personal(self, model, memory):
    return self._with(model, memory)

  def _with(self, model, values):
    """Returns the model with the chosen weights of other values."""
    where = tf.where if tf.is_tensor(model.loc) else np.where
    mask = self._mask()
    mean = where(mask, values['mean'], model.mean)
    scale = where(mask[: model.loc.shape[0]], values['scale'], model.scale)
    buffers = values['buffers'] if self.keeps_batch_norm else model.buffers
    return model.replace_mean(mean)._replace(scale=scale, buffers=buffers)

  def _mask(self) -> np.ndarray:
    """Returns which means stay on the client, `[num_trainable]` bool."""
    layout = self.layout
    pattern = {
      'batch_norm': _OF_NORMALIZATION,
      'head': f'{max(layout.mean_layers, default=0)}/.*',
    }.get(self.layers, self.layers)
    shapes = layout.loc + layout.point
    return np.repeat(
      [bool(re.fullmatch(pattern, name)) for name in layout.names()],
      [shape.num_elements() for shape in shapes],
    )


def _values(model):
  return {'mean': model.mean, 'scale': model.scale, 'buffers': model.buffers}
