"""The names under which a run gives its own values: all of them are here.

An argument of a method with one of these names always gets the run's value, so
it needs no default. Every other argument with a default is a setting,
`--<method>.<argument>`, whatever its name. A network is also given the settings
of its variant, which reach nothing else, and a method that `uses` another is
given `make_<other>`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bfl_tf import models, server, settings


class Given(NamedTuple):
  """What a run gives under a name.

  Attributes:
    kind: its type.
    help: one line.
    to: the roles that it is given to; a field of the config goes to any.
  """

  kind: Any
  help: str
  to: tuple[str, ...] = ()


_NETWORK = ('model',)
_PARTITION = ('partition',)
_STAGES = ('server_step', 'refine', 'start')

GIVEN: Mapping[str, Given] = {
  'seed': Given(int, 'Of every draw in the run.'),
  'num_clients': Given(int, 'Clients in all.'),
  'clients_per_round': Given(int, 'Clients drawn each round; 0 for all.'),
  'num_rounds': Given(int, 'Rounds in all.'),
  'num_classes': Given(
    int, 'Of the labels.', (*_PARTITION, *_NETWORK, *_STAGES)
  ),
  'rows': Given(
    np.ndarray, "Each example's place in the data set.", _PARTITION
  ),
  'client_ids': Given(np.ndarray, 'Whose each example is.', _PARTITION),
  'input_shape': Given(tuple, 'Of one example.', _NETWORK),
  'resources': Given(
    server.Resources, 'To train, predict or draw with.', _STAGES
  ),
  'variant': Given(str, "The name of the weights' variant.", _NETWORK),
  'kernel_initializer': Given(str, 'Of kernels or their means.', _NETWORK),
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
