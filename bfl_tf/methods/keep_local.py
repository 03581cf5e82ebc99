"""A client's own model after its last local training.

References:
  T. Yu, E. Bagdasaryan, V. Shmatikov. Salvaging federated learning by local
  adaptation. arXiv:2002.04758.
"""

import dataclasses

from bfl_tf.methods.method import Method
from bfl_tf.parts import Local, Sent

_KEPT = ('loc', 'scale', 'point', 'buffers')


@dataclasses.dataclass(frozen=True)
class KeepLocal(Local):
  """Keeps the trained model as the client's personal model."""

  name = 'keep_local'

  def memory(self, model):
    return {name: getattr(model, name) for name in _KEPT}

  def end(self, model, carry, trace):
    return Sent(model, self.memory(model))

  def personal(self, model, memory):
    return model._replace(**memory, factor=model.factor[:0])


fedavg_local = Method(
  (KeepLocal(),),
  help="FedAvg whose personal models are those of each client's last local "
  'training.',
)
