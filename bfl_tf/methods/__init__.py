"""All methods: each is a `Method` in a module of this package.

A module contains what the clients and the server do, with the settings, and the
values that `--method` selects by their names.
"""

from typing import Any

from bfl_tf import clients, server
from bfl_tf.methods import (
  bayes_admm,
  ditto,
  fedadam,
  fedavg,
  fedavgm,
  fedbe,
  feddyn,
  fedlap,
  fednova,
  fedpa,
  fedprox,
  flipout,
  ivon,
  keep_local,
  langevin,
  laplace,
  local_layers,
  mc_dropout,
  pfedbayes,
  pvi,
  scaffold,
  swag,
)
from bfl_tf.methods.method import Method

NAMED: dict[str, Method] = {
  name: value
  for module in list(vars().values())
  if getattr(module, '__package__', None) == __name__
  for name, value in sorted(vars(module).items())
  if isinstance(value, Method)
}

CLIENT_PARTS: dict[str, Any] = {
  part.name: part
  for part in (
    bayes_admm.BayesADMM,
    clients.Projection,
    ditto.Ditto,
    feddyn.FedDyn,
    fedlap.FedLap,
    fednova.FedNova,
    fedpa.FedPA,
    fedprox.Proximal,
    keep_local.KeepLocal,
    langevin.Langevin,
    local_layers.LocalLayers,
    pfedbayes.PFedBayes,
    pvi.PVI,
    scaffold.Scaffold,
    swag.Swag,
  )
}

SERVER_PARTS: dict[str, Any] = {
  part.name: part
  for part in (
    fedadam.Adaptive,
    fedavgm.Momentum,
    fedbe.Distil,
    server.Ensemble,
    server.FineTune,
    server.KeepSamples,
    server.Recalibrate,
    server.StoreUpdates,
  )
}
