"""Which node plays which client, and messages out to nodes."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import itertools
import time
from typing import NamedTuple

from absl import logging
from flwr import app as flwr_app
from flwr import serverapp

from bfl_tf.flower import messages

_POLL_SECONDS = 0.2


@dataclasses.dataclass(frozen=True)
class Simulated:
  """Any node plays any client: they all see the same data.

  Attributes:
    ids: of the nodes.
  """

  ids: Sequence[int]

  @classmethod
  def of(
    cls, grid: serverapp.Grid, num_nodes: int, seconds: float
  ) -> 'Simulated':
    """Waits for all of them.

    Raises:
      ValueError: they are not there in time.
    """
    deadline = time.monotonic() + seconds
    while len(found := sorted(grid.get_node_ids())) < num_nodes:
      if time.monotonic() > deadline:
        raise ValueError(
          f'after {seconds:.0f} s {len(found)} of {num_nodes} simulated nodes '
          'are there: the machine is too busy for them.'
        )
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

  @classmethod
  def of(cls, reply: flwr_app.Message) -> 'Answer':
    """Reads anybody's reply."""
    if reply.has_error():
      return cls(refusal=messages.reason(reply.error))
    wanted = {'client': int, 'introduction': str}
    try:
      said = messages.unpack(reply.content, wanted)
      return cls(said['client'], said['introduction'])
    except (ValueError, KeyError) as error:
      return cls(refusal=f'its answer cannot be read: {error}')


@dataclasses.dataclass
class Numbered:
  """SuperNodes by the number that their owners gave them, `partition-id`.

  Attributes:
    grid: Flower's.
    flags: of the run, as of `flags_file.flag_lines`.
    answers: by node.
    asked: by node that has not answered yet, the message's number.
    playing: by client, its node, as long as that is there.
    said: by client, what its first node said of its examples.
  """

  grid: serverapp.Grid
  flags: str
  answers: dict[int, Answer] = dataclasses.field(default_factory=dict)
  asked: dict[int, str] = dataclasses.field(default_factory=dict)
  playing: dict[int, int] = dataclasses.field(default_factory=dict)
  said: dict[int, str] = dataclasses.field(default_factory=dict)

  @classmethod
  def of(
    cls, grid: serverapp.Grid, flags: str, num_clients: int, seconds: float
  ) -> 'Numbered':
    """Waits until all clients have a node.

    Raises:
      ValueError: they have not; says why nodes will not take part.
    """
    nodes, clients = cls(grid, flags), range(num_clients)
    deadline = time.monotonic() + seconds
    while missing := sorted(set(clients) - set(nodes(clients))):
      if time.monotonic() > deadline:
        raise ValueError(nodes._missing(missing, num_clients, seconds))
      time.sleep(_POLL_SECONDS)
    return nodes

  def __call__(self, clients: Sequence[int]) -> Mapping[int, int]:
    """Returns the nodes that are there, by client."""
    self._refresh()
    return {c: self.playing[c] for c in clients if c in self.playing}

  def introductions(self, clients: Sequence[int]) -> dict[int, str]:
    """Returns what those said that have examples of their own, by client."""
    said = {c: self.answers[n].introduction for c, n in self(clients).items()}
    return {client: text for client, text in said.items() if text}

  def _refresh(self) -> None:
    """Forgets who has gone, asks who is new, and hears who has answered."""
    present = set(self.grid.get_node_ids())
    for known in (self.answers, self.asked):
      for node in set(known) - present:
        del known[node]
    self.playing = {c: n for c, n in self.playing.items() if n in present}
    # Another that said the same number takes over, with the same examples.
    for node, answer in sorted(self.answers.items()):
      if answer.client is not None and self._is_same(answer):
        self.playing.setdefault(answer.client, node)
    for node in sorted(present - set(self.answers) - set(self.asked)):
      content = messages.pack({'flags': self.flags})
      query = flwr_app.Message(content, node, 'query')
      for number in self.grid.push_messages([query]):
        # None of one that Flower could not take.
        if number:
          self.asked[node] = number
    # One that trains for a run before this one answers when it is done.
    for node, number in list(self.asked.items()):
      for reply in self.grid.pull_messages([number]):
        del self.asked[node]
        self._hear(node, Answer.of(reply))

  def _is_same(self, answer) -> bool:
    """Whether it is of the examples that its client had first."""
    said = answer.introduction
    return self.said.setdefault(answer.client, said) == said

  def _hear(self, node, answer):
    self.answers[node] = answer
    if answer.client is None:
      return
    if not self._is_same(answer):
      logging.warning(
        'SuperNode %d says that it is client %d, and has another file than the '
        'first: it does not play it.', node, answer.client,
      )  # fmt: skip
      return
    first = self.playing.setdefault(answer.client, node)
    if first != node:
      logging.warning(
        'SuperNodes %d and %d both say that they are client %d: the first '
        'plays it.', first, node, answer.client,
      )  # fmt: skip

  def _missing(self, missing, num_clients, seconds) -> str:
    said = [
      f'SuperNode {node}: {answer.refusal}'
      for node, answer in sorted(self.answers.items())
      if answer.refusal
    ]
    said = said or ["start each with --node-config 'partition-id=N'."]
    return (
      f'after {seconds:.0f} s clients {", ".join(map(str, missing[:10]))} of '
      f'{num_clients} have no SuperNode: {"; ".join(said)}'
    )


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

  A few are out at a time and replies are pulled one by one, so that the server
  holds a few of them however many nodes there are.

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
