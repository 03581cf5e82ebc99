"""Why a run stops before its last round; its state is saved."""

from collections.abc import Iterator, Mapping
import contextlib
import itertools
from typing import Any

import numpy as np

from bfl_tf import own, training
from bfl_tf import weights as weights_lib

# That one line tells: thousands of clients may have one each.
# Of what somebody else's reason goes into a line.
LONGEST = 300
_MOST_REASONS = 10


class StoppedError(RuntimeError):
  """A run cannot go on; the state before the round is still good."""


class TooFewClientsError(StoppedError):
  """Fewer updates than `--min_clients` could be accepted."""


class CulpritError(StoppedError):
  """A rule, weighting or stage gave what no round can go on from."""


class MachineError(StoppedError):
  """The machine refused something: a disk is full, a file cannot be read."""


class Terminated(KeyboardInterrupt):
  """The process was asked to end, as Ctrl-C asks it."""


def reasons(left_out: Mapping[int, str]) -> str:
  """Says who was left out, by reason: `1, 4: it sent nothing; 2: ...`."""
  clients: dict[str, list[int]] = {}
  for client, why in sorted(left_out.items()):
    clients.setdefault(why[:LONGEST], []).append(client)
  said = [
    f'{", ".join(map(str, who))}: {why}'
    for why, who in itertools.islice(clients.items(), _MOST_REASONS)
  ]
  more = len(clients) - len(said)
  return '; '.join([*said, *([f'and {more} more'] if more else [])])


@contextlib.contextmanager
def blaming(culprit: str) -> Iterator[None]:
  """What is raised in it is a CulpritError, and its cause."""
  try:
    yield
  except (StoppedError, OSError):
    raise
  except own.ERRORS as error:
    raise CulpritError(f'{culprit} raised {own.describe(error)}.') from error


def check_weight(culprit: str, client: int, weight: Any) -> None:
  """Raises unless a client's weight is finite and not below 0."""
  if not (np.ndim(weight) == 0 and np.isfinite(weight) and weight >= 0):
    raise CulpritError(f'{culprit} gave client {client} the weight {weight}.')


def check_model(
  culprit: str, model: weights_lib.Weights, like: weights_lib.Weights
) -> None:
  """Raises a CulpritError unless a model can be broadcast."""
  if not isinstance(model, weights_lib.Weights):
    raise CulpritError(
      f'{culprit} returned {type(model).__name__}, no Weights.'
    )
  for name, spec in like._asdict().items():
    vector = model._asdict()[name]
    defect = training.mismatch(vector, spec)
    if not defect and not np.all(np.isfinite(vector)):
      defect = 'is not finite'
    if not defect and name == 'scale' and np.any(vector <= 0):
      defect = 'is not positive'
    if defect:
      raise CulpritError(
        f'{culprit} returned a model that is none: its {name} {defect}.'
      )
