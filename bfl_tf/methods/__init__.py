"""Methods: the client half and the server half in one file."""

from typing import Any

from bfl_tf import clients
from bfl_tf.methods.bayes_admm import BayesADMM
from bfl_tf.methods.feddyn import FedDyn
from bfl_tf.methods.fedlap import FedLap
from bfl_tf.methods.fednova import FedNova
from bfl_tf.methods.langevin import Langevin
from bfl_tf.methods.pvi import PVI
from bfl_tf.methods.scaffold import Scaffold

CLIENT_PARTS: dict[str, Any] = {
  part.name: part
  for part in (
    BayesADMM,
    FedDyn,
    FedLap,
    FedNova,
    Langevin,
    PVI,
    Scaffold,
    clients.Ditto,
    clients.FedPA,
    clients.KeepLocal,
    clients.LocalLayers,
    clients.PFedBayes,
    clients.Projection,
    clients.Proximal,
    clients.Swag,
  )
}
