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


class Order(NamedTuple):
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
  orders: Iterator[Order],
  window: int,
  poll_seconds: float,
) -> Iterator[tuple[int, Reply]]:
  """Sends orders and yields each client with its reply, as they come.

  Args:
    grid: Flower's.
    orders: made one at a time, when they go out.
    window: how many may be out at a time.
    poll_seconds: between two looks for replies.

  Returns:
    The reply, or why there is none.
  """
  # By a message's number, who is asked, and until when.
  out: dict[str, tuple[int, float]] = {}
  orders, more = iter(orders), True
  while more or out:
    free = window - len(out)
    sent = 0
    for order in itertools.islice(orders, free):
      sent += 1
      numbers = [n for n in grid.push_messages([order.message]) if n]
      if not numbers:
        yield order.client, NodeError('its order could not be sent')
      out |= dict.fromkeys(
        numbers, (order.client, time.monotonic() + order.seconds)
      )
    more = sent == free
    waiting = len(out)
    yield from _arrived(grid, out)
    if out and len(out) == waiting:
      time.sleep(poll_seconds)


def _arrived(grid, out) -> Iterator[tuple[int, Reply]]:
  """Yields what has come, and what will not come any more."""
  for number, (client, deadline) in list(out.items()):
    replies = list(grid.pull_messages([number]))
    if replies:
      del out[number]
      yield client, replies[0]
    elif time.monotonic() > deadline:
      del out[number]
      yield client, TimeoutError('nothing came within --client_timeout')


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
