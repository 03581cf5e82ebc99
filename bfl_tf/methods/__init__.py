"""Methods that have a half on the client and a half on the server.

A method is one file, with a `Part` of the client and the `Stage` of the server
that the part needs, and one row of `METHODS`. A part, stage or rule that stands
alone is in `clients`, `server` or `pooling`; the tables of parts and stages are
here, together with what the rows bring.
"""

from typing import Any

from bfl_tf import clients, server
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
STAGES = server.STAGES | {m.Stage.name: m.Stage for m in METHODS}
