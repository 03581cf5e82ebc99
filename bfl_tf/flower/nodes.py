"""Assignment of clients to nodes, and exchange of messages with nodes."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import itertools
import time
from typing import NamedTuple

from absl import logging
from flwr import app as flwr_app
from flwr import serverapp

from bfl_tf.declare import user_code
from bfl_tf.federation import stopping
from bfl_tf.flower import messages

_POLL_SECONDS = 0.2
_REMIND_SECONDS = 10.0
_START_SECONDS = 300.0


@dataclasses.dataclass(frozen=True)
class SimulatedNodes:
  """Nodes of a simulation: all see the same data and may train any client."""

  grid: serverapp.Grid
  num_nodes: int

  def __call__(self, clients: Sequence[int]) -> Mapping[int, int]:
    """Assigns clients to nodes in turn and returns the node of each client."""
    # Flower creates the nodes while the server starts.
    deadline = time.monotonic() + _START_SECONDS
    while len(ids := sorted(self.grid.get_node_ids())) < self.num_nodes:
      if time.monotonic() > deadline:
        raise stopping.MachineError(
          f"only {len(ids)} of {self.num_nodes} nodes of Flower's simulation "
          f'started in {_START_SECONDS:.0f} s: use a smaller --num_workers.'
        )
      time.sleep(_POLL_SECONDS)
    return {c: ids[i % len(ids)] for i, c in enumerate(clients)}


class Answer(NamedTuple):
  """Reply of a node to the query for its client number."""

  client: int | None = None
  data_summary: str = ''
  refusal: str = ''

  @classmethod
  def of(cls, reply: flwr_app.Message) -> 'Answer':
    """Reads a reply, which may be invalid."""
    if reply.has_error():
      return cls(refusal=messages.reason(reply.error))
    answer = user_code.attempt(cls._read, reply)
    if isinstance(answer, BaseException):
      why = stopping.clean(user_code.describe(answer))
      return cls(refusal=f'its answer cannot be read: {why}')
    return answer

  @classmethod
  def _read(cls, reply) -> 'Answer':
    tree = messages.unpack(reply.content)
    client, text = tree['client'], tree['data_summary']
    if type(client) is not int or type(text) is not str:
      raise TypeError('client must be an integer and data_summary a text')
    return cls(client, text)


@dataclasses.dataclass
class SuperNodes:
  """SuperNodes with a client number from their owners, the `partition-id`.

  Attributes:
    summaries: Data summary from the first node of a client, by client.
    refusals: Last reason why a node cannot take part, by node.
  """

  grid: serverapp.Grid
  flags: str
  answers: dict[int, Answer] = dataclasses.field(default_factory=dict)
  pending: dict[int, str] = dataclasses.field(default_factory=dict)
  summaries: dict[int, str] = dataclasses.field(default_factory=dict)
  refusals: dict[int, str] = dataclasses.field(default_factory=dict)

  @classmethod
  def of(
    cls, grid: serverapp.Grid, flags: str, num_clients: int, seconds: float
  ) -> 'SuperNodes':
    """Waits until all clients have a node."""
    nodes, clients = cls(grid, flags), range(num_clients)
    started = time.monotonic()
    deadline, reminder = started + seconds, started + _REMIND_SECONDS
    while missing := sorted(set(clients) - set(nodes(clients))):
      if time.monotonic() > reminder:
        names = ', '.join(map(str, missing[:10]))
        print(
          f'waiting for {len(missing)} SuperNodes (clients {names})', flush=True
        )
        reminder += _REMIND_SECONDS
      if time.monotonic() > deadline:
        raise ValueError(nodes._missing(missing, num_clients, seconds))
      time.sleep(_POLL_SECONDS)
    return nodes

  def __call__(self, clients: Sequence[int]) -> Mapping[int, int]:
    """Returns the first present node of each client."""
    self._refresh()
    playing: dict[int, int] = {}
    for node, answer in self.answers.items():
      if answer.client is not None and answer.client in clients:
        playing.setdefault(answer.client, node)
    return playing

  def _refresh(self) -> None:
    """Removes nodes that left, queries new nodes, and reads their answers."""
    present = set(self.grid.get_node_ids())
    for known in (self.answers, self.pending):
      for node in set(known) - present:
        del known[node]
    for node in sorted(present - set(self.answers) - set(self.pending)):
      content = messages.pack({'flags': self.flags})
      query = flwr_app.Message(content, node, 'query')
      for number in self.grid.push_messages([query]):
        # Flower returns no number for a message that it could not send.
        if number:
          self.pending[node] = number
    # A node busy with an earlier run answers only after its training.
    for node, number in list(self.pending.items()):
      for reply in self.grid.pull_messages([number]):
        del self.pending[node]
        self._hear(node, Answer.of(reply))

  def _hear(self, node, answer):
    if answer.client is not None:
      first = self.summaries.setdefault(answer.client, answer.data_summary)
      if first != answer.data_summary:
        answer = Answer(
          refusal=f'client {answer.client} has another file than its first '
          'node reported'
        )
      elif any(a.client == answer.client for a in self.answers.values()):
        logging.warning(
          'SuperNode %d reports the client number %d of another node: it is '
          'used only if the other node leaves.', node, answer.client,
        )  # fmt: skip
    if answer.refusal:
      # A refused node is asked again, since its owner may correct the reason.
      if self.refusals.get(node) != answer.refusal:
        print(f'SuperNode {node}: {answer.refusal}', flush=True)
      self.refusals[node] = answer.refusal
    else:
      self.refusals.pop(node, None)
      self.answers[node] = answer

  def _missing(self, missing, num_clients, seconds) -> str:
    hints = [
      f'SuperNode {node}: {refusal}'
      for node, refusal in sorted(self.refusals.items())
    ] + [
      f'SuperNode {node} has not answered: it may be busy with another run'
      for node in sorted(set(self.pending) - set(self.refusals))
    ]
    hints = hints or ["start each with --node-config 'partition-id=N'."]
    return (
      f'after {seconds:.0f} s clients {", ".join(map(str, missing[:10]))} of '
      f'{num_clients} have no SuperNode: {"; ".join(hints)}'
    )


class NodeError(RuntimeError):
  """An error message from a node."""


Reply = flwr_app.Message | Exception


def exchange(
  grid: serverapp.Grid,
  requests: Iterator[tuple[int, flwr_app.Message]],
  window: int,
  seconds: float,
) -> Iterator[tuple[int, Reply]]:
  """Sends messages and yields each client with its reply, as they arrive.

  The window and single pulls bound the server's memory for any number of nodes.
  """
  # Client and deadline, by message number.
  out: dict[str, tuple[int, float]] = {}
  more, heard = True, time.monotonic()
  while more or out:
    free = window - len(out)
    sent = 0
    for client, message in itertools.islice(requests, free):
      sent += 1
      numbers = [n for n in grid.push_messages([message]) if n]
      if not numbers:
        yield client, NodeError('its message could not be sent')
      out |= dict.fromkeys(numbers, (client, time.monotonic() + seconds))
    more = sent == free
    waiting = len(out)
    for number, (client, deadline) in list(out.items()):
      replies = list(grid.pull_messages([number]))
      if replies or time.monotonic() > deadline:
        del out[number]
        late = TimeoutError(f'nothing came within {seconds:g} s')
        yield client, replies[0] if replies else late
    if len(out) < waiting:
      heard = time.monotonic()
    elif out:
      # Each poll costs one request per message, so the pause grows with time.
      silent = time.monotonic() - heard
      time.sleep(min(1.0, max(0.01 * len(out), silent / 20)))


def content(reply: Reply) -> flwr_app.RecordDict:
  """Returns the content of a reply."""
  if isinstance(reply, Exception):
    raise reply
  if reply.has_error():
    raise NodeError(messages.reason(reply.error))
  return reply.content
