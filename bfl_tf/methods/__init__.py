"""All methods by name, and methods with a client part and a server stage.

A method is a `Method` in a module of this package, under the name that
`--method` selects. A method with a client half and a server half also has its
`Part` and its `Stage` in this module, and one row of `METHODS`. Parts, stages
and rules without a counterpart are in `clients`, `server` and `server.pooling`.
`NAMED` is the table of all methods, `PARTS` that of all client parts.
"""

from typing import Any

from bfl_tf import clients
from bfl_tf.methods import (
  bayes_admm,
  beta_predictive_bayes,
  ditto,
  fedavg,
  fedbe,
  feddyn,
  fedlap,
  fednova,
  fedpa,
  fedprox,
  fl_swag,
  flipout,
  ivon,
  langevin,
  laplace,
  local_layers,
  mc_dropout,
  pfedbayes,
  pvi,
  scaffold,
  server_optimizers,
)
from bfl_tf.methods.method import Method

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

NAMED: dict[str, Method] = {
  name: value
  for module in (
    *METHODS,
    beta_predictive_bayes,
    ditto,
    fedavg,
    fedbe,
    fedpa,
    fedprox,
    fl_swag,
    flipout,
    ivon,
    langevin,
    laplace,
    local_layers,
    mc_dropout,
    pfedbayes,
    server_optimizers,
  )
  for name, value in sorted(vars(module).items())
  if isinstance(value, Method)
}
