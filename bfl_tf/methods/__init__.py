"""Methods that have a half on the client and a half on the server.

A method is one file and one row of `METHODS`. A part, stage or rule that stands
alone is in `clients`, `server` or `pooling`; the tables of parts and stages are
here, together with what the rows bring.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from bfl_tf import clients, server
from bfl_tf.methods import bayes_admm, fednova, pvi, scaffold, thinning


class Halves(NamedTuple):
  """What a method is made of; `name` of each says what flags call it.

  Attributes:
    part: of the client, as `clients` describes it.
    stage: of the server, as `server` describes it, which the part needs.
  """

  part: Any
  stage: Any


METHODS = (
  Halves(bayes_admm.Part, bayes_admm.Stage),
  Halves(fednova.Part, fednova.Stage),
  Halves(pvi.Part, pvi.Stage),
  Halves(scaffold.Part, scaffold.Stage),
  Halves(thinning.Part, thinning.Stage),
)


def _named(halves: Iterable[Any]) -> dict[str, Any]:
  return {half.name: half for half in halves}


PARTS = clients.PARTS | _named(method.part for method in METHODS)
STAGES = server.STAGES | _named(method.stage for method in METHODS)
