"""Methods with a client part and a matching server stage.

A method is one file with a `Part` and a `Stage`, and one row of `METHODS`.
Parts, stages and rules without a counterpart are in `clients`, `server` and
`server.pooling`. `PARTS` is the table of all client parts.
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
)

METHODS: tuple[Any, ...] = (
  bayes_admm,
  feddyn,
  fedlap,
  fednova,
  pvi,
  scaffold,
)

PARTS: dict[str, Any] = {
  part.name: part
  for part in (
    clients.Ditto,
    clients.FedPA,
    clients.KeepLocal,
    clients.Langevin,
    clients.LocalLayers,
    clients.PFedBayes,
    clients.Projection,
    clients.Proximal,
    clients.Swag,
    *(method.Part for method in METHODS),
  )
}
