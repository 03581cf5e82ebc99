"""What bad clients do, to try rules and weightings on.

An attack is a frozen dataclass with a `name`, the `fraction` of the clients
that are bad, and one of these or both:

  labels(y, num_classes) -> y             what a bad client trains on
  send(model, start, generator) -> model  what it sends of what it trained

`y` are the labels of all examples, classes or probabilities; `start` is what
was broadcast, `generator` NumPy's, named by round and client. A run without
attacks draws nothing for them.

References:
  M. Fang et al. Local model poisoning attacks to Byzantine-robust federated
    learning. USENIX Security 2020.
  P. Blanchard et al. Machine learning with adversaries: Byzantine tolerant
    gradient descent. NeurIPS 2017.
"""

from bfl_tf.attacks.choosing import bad_clients
from bfl_tf.attacks.label_flip import LabelFlip
from bfl_tf.attacks.random_model import RandomModel
from bfl_tf.attacks.scaled_update import ScaledUpdate

__all__ = ['ATTACKS', 'LabelFlip', 'RandomModel', 'ScaledUpdate', 'bad_clients']

ATTACKS = {
  'label_flip': LabelFlip,
  'random_model': RandomModel,
  'scaled_update': ScaledUpdate,
}
