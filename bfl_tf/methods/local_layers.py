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

import dataclasses
import re

import numpy as np

from bfl_tf.declare.settings import setting
from bfl_tf.methods.method import Method
from bfl_tf.parts import Local, Sent, Start
from bfl_tf.startup import tf

_OF_NORMALIZATION = r'\d+/(gamma|beta)'


@dataclasses.dataclass(frozen=True)
class LocalLayers(Local):
  """Keeps chosen weights of the network on the client."""

  layers: str = setting(
    'batch_norm',
    'Weights that stay on the client: batch_norm, head for the last layer, '
    'or a regular expression for names such as 0/kernel, the kernel of the '
    'first layer.',
  )

  name = 'local_layers'
  trains_global_model = False

  def check(self, facts):
    facts.need(
      self.layers != 'batch_norm' or facts.config.batch_norm != 'recalibrate',
      'the statistics of batch normalization on the clients: remove '
      '--batch_norm=recalibrate',
    )
    layout = self.run.layout
    if not layout:
      return
    num_chosen = len(self._places()[0])
    which = 'all' if num_chosen else 'none'
    facts.need(
      num_chosen not in (0, layout.num_trainable()),
      f'--local_layers.layers with some of the weights '
      f'{", ".join(layout.names())}; {self.layers} matches {which}',
    )

  def memory(self, model):
    return self._chosen(model)

  def begin(self, ctx, memory):
    return Start(self._with(ctx.start, memory), self._chosen(ctx.broadcast))

  def end(self, model, broadcast, trace):
    return Sent(self._with(model, broadcast), self._chosen(model))

  def personal(self, model, memory):
    return self._with(model, memory)

  def _places(self) -> tuple[np.ndarray, np.ndarray]:
    """Returns the places of the chosen means, and of their scales."""
    layout = self.run.layout
    pattern = {
      'batch_norm': _OF_NORMALIZATION,
      'head': f'{max(layout.mean_layers, default=0)}/.*',
    }.get(self.layers, self.layers)
    mask = np.repeat(
      [bool(re.fullmatch(pattern, name)) for name in layout.names()],
      [shape.num_elements() for shape in layout.loc + layout.point],
    )
    places = np.flatnonzero(mask)
    # The means of variational layers are first.
    return places, places[places < layout.size('loc')]

  def _chosen(self, model):
    """Returns the values that stay on the client."""
    mean, scale = self._places()
    values = {
      'mean': tf.gather(model.mean, mean),
      'scale': tf.gather(model.scale, scale),
    }
    if self.layers == 'batch_norm':
      values['buffers'] = model.buffers
    return values

  def _with(self, model, values):
    """Returns the model with other values of the chosen weights."""
    mean, scale = self._places()
    return model.replace_mean(_put(model.mean, mean, values['mean']))._replace(
      scale=_put(model.scale, scale, values['scale']),
      buffers=values.get('buffers', model.buffers),
    )


def _put(values, places, new):
  return tf.tensor_scatter_nd_update(values, places[:, None], new)


fedper = Method(
  (LocalLayers('head'),),
  help='FedPer (Arivazhagan et al. 2019): the last layer stays on the clients.',
)

fedbn = Method(
  (LocalLayers('batch_norm'),),
  help='FedBN (Li et al. 2021): batch normalization stays on the clients. '
  'Needs a network with batch normalization, such as --model=resnet20.',
)
