"""Which node plays which client."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import time
from typing import Any

from flwr import app as flwr_app
from flwr import serverapp

_POLL_SECONDS = 0.2
# For a node to say its number: it may have to start Python first.
_ANSWER_SECONDS = 60.0


@dataclasses.dataclass(frozen=True)
class Simulated:
  """Any node plays any client: they all see the same data.

  Attributes:
    ids: of the nodes.
  """

  ids: Sequence[int]

  @classmethod
  def of(cls, grid: serverapp.Grid, num_nodes: int) -> 'Simulated':
    """Waits for all of them."""
    while len(found := sorted(grid.get_node_ids())) < num_nodes:
      time.sleep(_POLL_SECONDS)
    return cls(found)

  def __call__(self, clients: Sequence[int]) -> Mapping[int, int]:
    """Deals clients out to nodes."""
    return {c: self.ids[c % len(self.ids)] for c in clients}


@dataclasses.dataclass
class Numbered:
  """SuperNodes by the number that their owner gave them, `partition-id`.

  Attributes:
    grid: Flower's.
    numbers: by node, the client that it plays; None if it says nothing good.
  """

  grid: serverapp.Grid
  numbers: dict[int, int | None] = dataclasses.field(default_factory=dict)

  @classmethod
  def of(
    cls, grid: serverapp.Grid, num_clients: int, seconds: float
  ) -> 'Numbered':
    """Waits until all clients have a node.

    Raises:
      ValueError: they have not.
    """
    nodes, clients = cls(grid), range(num_clients)
    deadline = time.monotonic() + seconds
    while missing := sorted(set(clients) - set(nodes(clients))):
      if time.monotonic() > deadline:
        raise ValueError(
          f'after {seconds:.0f} s clients {", ".join(map(str, missing[:10]))} '
          f'of {num_clients} have no SuperNode: start each with --node-config '
          "'partition-id=N'."
        )
      time.sleep(_POLL_SECONDS)
    return nodes

  def __call__(self, clients: Sequence[int]) -> Mapping[int, int]:
    """Returns the nodes that are there, by client."""
    self._refresh()
    found = self._by_client()
    return {client: found[client] for client in clients if client in found}

  def _refresh(self) -> None:
    """Forgets who has gone and asks who is new."""
    present = set(self.grid.get_node_ids())
    self.numbers = {n: c for n, c in self.numbers.items() if n in present}
    new = sorted(present - set(self.numbers))
    self.numbers |= dict.fromkeys(new) | dict(self._asked(new))

  def _asked(self, nodes) -> Iterator[tuple[int, int]]:
    if not nodes:
      return
    replies = self.grid.send_and_receive(
      [
        flwr_app.Message(flwr_app.RecordDict(), node, 'query') for node in nodes
      ],
      timeout=_ANSWER_SECONDS,
    )
    for reply in replies:
      if not reply.has_error():
        number: Any = reply.content.config_records['node']['client']
        yield reply.metadata.src_node_id, number

  def _by_client(self):
    """The first to say a number has it."""
    found: dict[int, int] = {}
    for node, client in sorted(self.numbers.items()):
      if client is not None:
        found.setdefault(client, node)
    return found
