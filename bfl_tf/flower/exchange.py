"""Messages out to nodes, and what comes of each.

A few are out at a time and replies are pulled one by one, so that the server
holds a few of them however many nodes there are.
"""

from collections.abc import Iterator
import itertools
import time
from typing import NamedTuple

from flwr import app as flwr_app
from flwr import serverapp

from bfl_tf.flower import messages


class NodeError(RuntimeError):
  """What a node said in place of an answer."""


class Errand(NamedTuple):
  """What goes out to one client's node.

  Attributes:
    client: whose it is.
    message: to its node.
    seconds: in which it is waited for.
  """

  client: int
  message: flwr_app.Message
  seconds: float


Reply = flwr_app.Message | Exception


def exchange(
  grid: serverapp.Grid,
  errands: Iterator[Errand],
  window: int,
  poll_seconds: float,
) -> Iterator[tuple[int, Reply]]:
  """Sends messages and yields each client with its reply, as they come.

  Args:
    grid: Flower's.
    errands: made one at a time, when they go out.
    window: how many may be out at a time.
    poll_seconds: between two looks for replies.

  Returns:
    The reply, or why there is none.
  """
  # By a message's number, what is out, and since when.
  out: dict[str, tuple[Errand, float]] = {}
  errands, more = iter(errands), True
  while more or out:
    free = window - len(out)
    sent = 0
    for errand in itertools.islice(errands, free):
      sent += 1
      numbers = [n for n in grid.push_messages([errand.message]) if n]
      if not numbers:
        yield errand.client, NodeError('its message could not be sent')
      out |= dict.fromkeys(numbers, (errand, time.monotonic()))
    more = sent == free
    waiting = len(out)
    yield from _arrived(grid, out)
    if out and len(out) == waiting:
      time.sleep(poll_seconds)


def _arrived(grid, out) -> Iterator[tuple[int, Reply]]:
  """Yields what has come, and what will not come any more."""
  for number, (errand, started) in list(out.items()):
    replies = list(grid.pull_messages([number]))
    if replies:
      del out[number]
      yield errand.client, replies[0]
    elif time.monotonic() > started + errand.seconds:
      del out[number]
      late = TimeoutError(f'nothing came within {errand.seconds:g} s')
      yield errand.client, late


def content(reply: Reply) -> flwr_app.RecordDict:
  """Returns what a reply holds.

  Raises:
    Exception: what came in its place.
  """
  if isinstance(reply, Exception):
    raise reply
  if reply.has_error():
    raise NodeError(messages.reason(reply.error))
  return reply.content
