"""All methods: each is a `Method` in a module of this package.

A module contains what the clients and the server do, with the settings, and the
values that `--method` selects by their names. The tables below contain the
parts and the values of all modules that are imported here.
"""

from typing import Any

from bfl_tf import parts, server
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

_MODULES = tuple(
  module
  for module in vars().copy().values()
  if getattr(module, '__package__', None) == __name__
)
NAMED: dict[str, Method] = {
  name: value
  for module in _MODULES
  for name, value in sorted(vars(module).items())
  if isinstance(value, Method)
}
_PARTS = {
  value.name: value
  for module in (*_MODULES, server)
  for value in vars(module).values()
  if isinstance(value, type) and issubclass(value, parts.Part) and value.name
}
CLIENT_PARTS: dict[str, Any] = {
  name: part for name, part in _PARTS.items() if issubclass(part, parts.Local)
}
# Server parts that have no client half and are no pooling rule.
SERVER_PARTS: dict[str, Any] = {
  name: part
  for name, part in _PARTS.items()
  if not issubclass(part, parts.Local | parts.Pool)
}
