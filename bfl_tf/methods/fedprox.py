"""FedProx: a penalty on the distance to the broadcast model.

Adds mu/2 |mean - start|^2 to a client's loss. FedBE's published code instead
adds mu/2 times the sum over weight tensors of |tensor - start|. It penalizes
only parameters that PyTorch names `weight`: kernels, and gamma of batch
normalization.

References:
  T. Li et al. Federated optimization in heterogeneous networks. MLSys 2020.
"""

import dataclasses

from bfl_tf import weights
from bfl_tf.declare.settings import setting
from bfl_tf.methods.method import Method
from bfl_tf.parts import Local, Start
from bfl_tf.startup import tf

PENALTIES = ('squared', 'norms')


@dataclasses.dataclass(frozen=True)
class Proximal(Local):
  """Adds the gradient of the penalty, after clipping and weight decay."""

  weight: float = setting(0.01, 'Proximal coefficient mu of FedProx.', ge=0)
  penalty: str = setting(
    'squared',
    'Penalty on the distance to the broadcast: its squared L2 norm, '
    "or the sum of the norms per weight tensor as in FedBE's "
    'published code.',
    choices=PENALTIES,
  )

  name = 'proximal'

  def begin(self, ctx, memory):
    return Start(ctx.start, ctx.broadcast.mean)

  def gradient(self, gradient, mean, start, step):
    if self.penalty == 'squared':
      return gradient + self.weight * (mean - start)
    return gradient + 0.5 * self.weight * self._directions(mean - start)

  def _directions(self, moved):
    """Returns the gradient of the sum of norms, 0 where clients start."""
    layout = self.run.layout
    tensors = weights.unflatten(moved, layout.loc + layout.point)
    return weights.flatten(
      [
        tf.math.divide_no_nan(tensor, tf.norm(tensor))
        if tensor.shape.rank > 1 or 'gamma' in name
        else tf.zeros_like(tensor)
        for tensor, name in zip(tensors, layout.mean_names, strict=True)
      ]
    )


fedprox = Method(
  (Proximal(weight=0.01),),
  tune={'proximal.weight': 'log:0.001:1'},
  help=__doc__,
)
