"""Which node plays which client."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import time
from typing import Any, NamedTuple

from flwr import app as flwr_app
from flwr import serverapp

from bfl_tf.flower import messages

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
    """Deals clients out to nodes, one each while there are enough."""
    return {c: self.ids[i % len(self.ids)] for i, c in enumerate(clients)}


class Answer(NamedTuple):
  """What a node says when it is asked who it is.

  Attributes:
    client: the number that it plays; None if it said nothing good.
    introduction: of the examples of its own, as JSON; nothing if it has none.
    refusal: why it will not take part.
  """

  client: int | None = None
  introduction: str = ''
  refusal: str = ''


@dataclasses.dataclass
class Numbered:
  """SuperNodes by the number that their owners gave them, `partition-id`.

  Attributes:
    grid: Flower's.
    flags: of the run, as of `recorded.flag_lines`.
    answers: by node.
  """

  grid: serverapp.Grid
  flags: str
  answers: dict[int, Answer] = dataclasses.field(default_factory=dict)

  @classmethod
  def of(
    cls, grid: serverapp.Grid, flags: str, num_clients: int, seconds: float
  ) -> 'Numbered':
    """Waits until all clients have a node.

    Raises:
      ValueError: they have not, or one will not take part.
    """
    nodes, clients = cls(grid, flags), range(num_clients)
    deadline = time.monotonic() + seconds
    while missing := sorted(set(clients) - set(nodes(clients))):
      for node, answer in nodes.answers.items():
        if answer.refusal:
          raise ValueError(f'SuperNode {node}: {answer.refusal}')
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
    # The first to say a number has it.
    found: dict[int, int] = {}
    for node, answer in sorted(self.answers.items()):
      if answer.client is not None and answer.client in clients:
        found.setdefault(answer.client, node)
    return found

  def introductions(self, clients: Sequence[int]) -> dict[int, str]:
    """Returns what those said that have examples of their own, by client."""
    said = {c: self.answers[n].introduction for c, n in self(clients).items()}
    return {client: text for client, text in said.items() if text}

  def _refresh(self) -> None:
    """Forgets who has gone and asks who is new."""
    present = set(self.grid.get_node_ids())
    self.answers = {n: a for n, a in self.answers.items() if n in present}
    new = sorted(present - set(self.answers))
    self.answers |= dict.fromkeys(new, Answer()) | dict(self._asked(new))

  def _asked(self, nodes) -> Iterator[tuple[int, Answer]]:
    if not nodes:
      return
    content = messages.pack_question(self.flags)
    replies = self.grid.send_and_receive(
      [flwr_app.Message(content, node, 'query') for node in nodes],
      timeout=_ANSWER_SECONDS,
    )
    for reply in replies:
      node = reply.metadata.src_node_id
      if reply.has_error():
        yield node, Answer(refusal=messages.reason(reply.error))
      else:
        said: Mapping[str, Any] = reply.content.config_records['node']
        yield node, Answer(said['client'], said['introduction'])
