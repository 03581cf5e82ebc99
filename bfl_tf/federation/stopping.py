"""Errors that stop a run before its last round; its state is saved."""

from collections.abc import Iterator, Mapping
import contextlib
import itertools
from typing import Any

import numpy as np

from bfl_tf import training, weights
from bfl_tf.declare import user_code

# Largest length of a reason, and largest number of reasons in a message.
# Thousands of clients may have one reason each.
LONGEST = 300
_MOST_REASONS = 10


class StoppedError(RuntimeError):
  """A run cannot continue; the state before the round is unchanged."""


class TooFewClientsError(StoppedError):
  """Fewer than `--min_clients` updates were accepted."""


class ComponentError(StoppedError):
  """A part or weighting failed or returned an invalid result."""


class MachineError(StoppedError):
  """An error of the machine, such as a full disk or an unreadable file."""


class Termination(KeyboardInterrupt):
  """The process received SIGTERM, which ends a run like Ctrl-C."""


def clean(text: str) -> str:
  """Returns a text of another machine as one short line without controls."""
  shown = ''.join(c if c.isprintable() else ' ' for c in text[:LONGEST])
  return ' '.join(shown.split())


def reasons(rejected: Mapping[int, str]) -> str:
  """Returns the rejected clients by reason: `1, 4: no reply; 2: ...`."""
  clients: dict[str, list[int]] = {}
  for client, why in sorted(rejected.items()):
    clients.setdefault(clean(why), []).append(client)
  reasons = [
    f'{", ".join(map(str, who))}: {why}'
    for why, who in itertools.islice(clients.items(), _MOST_REASONS)
  ]
  more = len(clients) - len(reasons)
  return '; '.join([*reasons, *([f'and {more} more'] if more else [])])


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
  """Raises a ComponentError unless a weight is finite and not negative."""
  if not (np.ndim(weight) == 0 and np.isfinite(weight) and weight >= 0):
    raise ComponentError(
      f'{component} gave client {client} the weight {weight}.'
    )


def check_columns(component: str, columns: Mapping[str, Any]) -> None:
  """Raises a ComponentError unless columns of `metrics.csv` are numbers."""
  for name, value in columns.items():
    if np.ndim(value) or isinstance(value, str) or name == 'round':
      raise ComponentError(
        f'{component} returned the column {name}={value!r:.99}; columns are '
        'numbers, and the name round is taken.'
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
  # A rule may return a factor of another rank than the clients'.
  like = like._replace(factor=training.any_rows(like.factor))
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
