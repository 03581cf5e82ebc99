"""FedProx: a penalty on the distance to the broadcast model.

Adds mu/2 |mean - start|^2 to a client's loss. FedBE's published code instead
adds mu/2 times the sum over weight tensors of |tensor - start|. It penalizes
only parameters that PyTorch names `weight`: kernels, and gamma of batch
normalization.

References:
  T. Li et al. Federated optimization in heterogeneous networks. MLSys 2020.
"""

from __future__ import annotations

import dataclasses

from bfl_tf import training, weights
from bfl_tf.declare.settings import setting
from bfl_tf.startup import tf

_NOTHING = weights.Layout((), (), ())
PENALTIES = ('squared', 'norms')


@dataclasses.dataclass(frozen=True)
class Proximal(training.Part):
  """The proximal term as a client part.

  Attributes:
    layout: Layout of the model, set by `with_layout`.
  """

  weight: float = setting(0.01, 'Proximal coefficient mu of FedProx.', ge=0)
  penalty: str = setting(
    'squared',
    'Penalty on the distance to the broadcast: its squared L2 norm, '
    "or the sum of the norms per weight tensor as in FedBE's "
    'published code.',
    choices=PENALTIES,
  )
  layout: weights.Layout = _NOTHING

  name = 'proximal'

  def with_layout(self, layout: weights.Layout) -> Proximal:
    return dataclasses.replace(self, layout=layout)

  def begin(self, start, shared, memory):
    return start.mean

  def loss(self, mean, carry):
    if self.penalty == 'squared':
      return 0.5 * self.weight * tf.reduce_sum(tf.square(mean - carry))
    layout = self.layout
    tensors = weights.unflatten(mean - carry, layout.loc + layout.point)
    norms = [
      _norm(tensor)
      for tensor, name in zip(tensors, layout.mean_names, strict=True)
      if tensor.shape.rank > 1 or 'gamma' in name
    ]
    return 0.5 * self.weight * tf.add_n(norms)


def _norm(tensor):
  """Returns the 2-norm, with gradient 0 at zero, where clients start."""
  square = tf.reduce_sum(tf.square(tensor))
  moved = square > 0
  return tf.where(moved, tf.sqrt(tf.where(moved, square, 1.0)), 0.0)
