"""Client parts: what a method adds to the one training loop.

A part is a frozen dataclass with a `name`, the name of a server stage that it
`needs` (or None; the federation puts that stage first in the chain), and any of
these. On the host:

  laid_out(layout) -> part           who wants the shapes behind `mean`
  check(num_steps, num_examples)     ValueError if such a training is none
  init_memory(model) -> memory       before the client's first round

Compiled into the loop:

  prior(start, shared, memory) -> training.Prior
  begin(start, shared, memory) -> carry
  loss(mean, carry) -> penalty
  gradient(gradient, mean, carry, step) -> gradient
  after_step(mean, carry, step) -> (mean or None for as it is, carry)
  finish(model, carry, trace) -> (model, extra, memory)
  report(carry, trace) -> {column: number}

`mean = [loc; point]` is a flat vector, also `model.mean`; `shared` is the slot
of the stage that the part needs, `memory` this client's own (an array or a dict
of arrays; only with `init_memory`), `extra` a vector to send or None. Both have
the same shapes and types in every round: what differs or is not finite is
refused. `step` has a seed of the part's own. `check` is asked once, before
anything is trained, about the smallest and the largest training of every
client. What is reported is averaged over the clients that were pooled, each
counting the same, into columns `<name>_<column>` of `metrics.csv`. One part of
a chain at most gives the prior of variational weights.

A part that needs only a loss writes only that. Five things are said by class
attributes: `plain_sgd = True`, right for SGD without momentum only;
`moves_mean = True`, `after_step` moves the mean to where no step of SGD leads;
`replaces_mean = True`, what `finish` makes of the mean is not where SGD ended;
`prior_is_broadcast = True`, the posterior that it leaves has what was broadcast
as its prior, for a rule that divides that out; and `random = 'all'`, `finish`
makes a Gaussian over all weights of a network without variational layers: it
sets `scale` and, if it likes, `factor` of the model.
"""

from bfl_tf.clients.gradient_noise import GradientNoise
from bfl_tf.clients.own_start import OwnStart
from bfl_tf.clients.projection import BALLS, Projection
from bfl_tf.clients.proximal import PENALTIES, Proximal
from bfl_tf.clients.scaffold import Scaffold
from bfl_tf.clients.swag import Swag
from bfl_tf.clients.thinning import Thinning

__all__ = [
  'BALLS',
  'PARTS',
  'PENALTIES',
  'GradientNoise',
  'OwnStart',
  'Projection',
  'Proximal',
  'Scaffold',
  'Swag',
  'Thinning',
]

PARTS = {
  'gradient_noise': GradientNoise,
  'own_start': OwnStart,
  'projection': Projection,
  'proximal': Proximal,
  'scaffold': Scaffold,
  'swag': Swag,
  'thinning': Thinning,
}
