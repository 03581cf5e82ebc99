"""Methods with a client part and a matching server stage.

A method is one file with a `Part` and a `Stage`, and one row of `METHODS`.
Parts, stages and rules without a counterpart are in `clients`, `server` and
`server.pooling`. `PARTS` lists all client parts.
"""

from typing import Any

from bfl_tf import clients
from bfl_tf.methods import (
  bayes_admm,
  feddyn,
  fedlap,
  fednova,
  pvi,
  scaffold,
  thinning,
)

METHODS: tuple[Any, ...] = (
  bayes_admm,
  feddyn,
  fedlap,
  fednova,
  pvi,
  scaffold,
  thinning,
)

PARTS = clients.PARTS | {m.Part.name: m.Part for m in METHODS}
