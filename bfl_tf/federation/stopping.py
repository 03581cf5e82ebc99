"""Why a run stops before its last round; its state is saved."""

from collections.abc import Iterator, Mapping
import contextlib
import itertools
from typing import Any

import numpy as np

from bfl_tf import training, weights
from bfl_tf.config import user_code

# That one line tells: thousands of clients may have one each.
# Of what somebody else's reason goes into a line.
LONGEST = 300
_MOST_REASONS = 10


class StoppedError(RuntimeError):
  """A run cannot go on; the state before the round is still good."""


class TooFewClientsError(StoppedError):
  """Fewer updates than `--min_clients` could be accepted."""


class ComponentError(StoppedError):
  """A rule, weighting or stage gave what no round can go on from."""


class MachineError(StoppedError):
  """The machine refused something: a disk is full, a file cannot be read."""


class Terminated(KeyboardInterrupt):
  """The process was asked to end, as Ctrl-C asks it."""


def reasons(rejected: Mapping[int, str]) -> str:
  """Says who was left out, by reason: `1, 4: it sent nothing; 2: ...`."""
  clients: dict[str, list[int]] = {}
  for client, why in sorted(rejected.items()):
    clients.setdefault(why[:LONGEST], []).append(client)
  said = [
    f'{", ".join(map(str, who))}: {why}'
    for why, who in itertools.islice(clients.items(), _MOST_REASONS)
  ]
  more = len(clients) - len(said)
  return '; '.join([*said, *([f'and {more} more'] if more else [])])


@contextlib.contextmanager
def wrap_errors(component: str) -> Iterator[None]:
  """Turns an error inside the block into a ComponentError."""
  try:
    yield
  except (StoppedError, OSError):
    raise
  except user_code.ERRORS as error:
    raise ComponentError(
      f'{component} raised {user_code.describe(error)}.'
    ) from error


def check_weight(component: str, client: int, weight: Any) -> None:
  """Raises unless a client's weight is finite and not below 0."""
  if not (np.ndim(weight) == 0 and np.isfinite(weight) and weight >= 0):
    raise ComponentError(
      f'{component} gave client {client} the weight {weight}.'
    )


def check_model(
  component: str, model: weights.Weights, like: weights.Weights
) -> None:
  """Raises a ComponentError unless a model can be broadcast."""
  if not isinstance(model, weights.Weights):
    raise ComponentError(
      f'{component} must return bfl_tf.weights.Weights, got '
      f'{type(model).__name__}.'
    )
  for name, spec in like._asdict().items():
    vector = model._asdict()[name]
    defect = training.mismatch(vector, spec)
    if not defect and not np.all(np.isfinite(vector)):
      defect = 'is not finite'
    if not defect and name == 'scale' and np.any(vector <= 0):
      defect = 'is not positive'
    if defect:
      raise ComponentError(
        f'{component} returned an invalid model: its {name} {defect}.'
      )
