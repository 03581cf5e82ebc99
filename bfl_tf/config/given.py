"""The names under which a run gives its own values: all of them are here.

An argument of a method with one of these names always gets the run's value, so
it needs no default. Every other argument with a default is a setting,
`--<method>.<argument>`, whatever its name. A network is also given the settings
of its variant, which reach nothing else, and a method that `uses` another is
given `make_<other>`.
"""

from collections.abc import Mapping
from typing import Any

from bfl_tf import models, settings

_NETWORK = ('model',)
_PARTITION = ('partition',)
_PARTS = ('client_parts',)
_STAGES = ('server_step', 'refine', 'start')

# By name, the roles that it is given to; all if it says none.
GIVEN: Mapping[str, tuple[str, ...]] = {
  # Integers: fields of the config of these names.
  'seed': (),
  'num_clients': (),
  'clients_per_round': (),
  'num_rounds': (),
  # An integer: of the labels.
  'num_classes': (*_PARTITION, *_NETWORK, *_STAGES),
  # Arrays: each example's place in the data set, and whose it is.
  'rows': _PARTITION,
  'client_ids': _PARTITION,
  # A `server.Resources`: to train, predict or draw with.
  'resources': _STAGES,
  # A number: of flipout's or IVON's prior, 1 / prior_scale^2; else 0.
  'prior_precision': _PARTS,
  # A tuple: of one example.
  'input_shape': _NETWORK,
  # Texts: fields of the config of these names.
  'variant': _NETWORK,
  'kernel_initializer': _NETWORK,
}

OF_VARIANTS = frozenset(
  name for kind in models.VARIANTS.values() for name in settings.of(kind)
)


def settings_of(role: str, thing: Any) -> dict[str, settings.Declared]:
  """Returns the settings of a thing in a role, by name."""
  given = GIVEN.keys() | (OF_VARIANTS if role == 'model' else frozenset())
  return {
    name: declared
    for name, declared in settings.of(thing).items()
    if name not in given
  }
