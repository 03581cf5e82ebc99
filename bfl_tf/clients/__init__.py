"""Client parts: what a method adds to the one training loop.

A part is a frozen dataclass with a `name`, the name of a server stage that it
`needs` (or None; the federation puts that stage first in the chain), and any of
these, all compiled into the loop:

  laid_out(layout) -> part           who wants the shapes behind `mean`
  init_memory(model) -> memory       before the client's first round
  begin(start, shared, memory) -> carry
  loss(mean, carry) -> penalty
  gradient(gradient, mean, carry, step) -> gradient
  after_step(mean, carry, step) -> (mean or None for as it is, carry)
  finish(model, carry, trace) -> (model, extra, memory)

`mean = [loc; point]` is a flat vector; `shared` is the slot of the stage that
the part needs, `memory` this client's own (an array or a dict of arrays; only
with `init_memory`), `extra` a vector to send or None. Both have the same shapes
and types in every round: what differs or is not finite is refused. A part that
needs only a loss writes only that; one that is right for SGD without momentum
only says `plain_sgd = True`.
"""

from bfl_tf.clients.proximal import PENALTIES, Proximal
from bfl_tf.clients.scaffold import Scaffold
from bfl_tf.clients.swa import Swa

__all__ = ['PARTS', 'PENALTIES', 'Proximal', 'Scaffold', 'Swa']

PARTS = {'proximal': Proximal, 'scaffold': Scaffold}
