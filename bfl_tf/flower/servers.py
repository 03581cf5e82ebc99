"""The server's side as Flower's ServerApp: a run of ours over its grid.

Its run config, `[tool.flwr.app.config]` of the app, says what to run:

  flags         the config, a flag a line
  output-dir    the run directory, on the server's machine
  ask           have a finished run's nodes score its model; without flags
  answer-timeout  of that: seconds for an answer; 0: the run's --client_timeout
  window        orders that may be out at a time
  node-timeout  seconds in which the clients' nodes must be there
"""

from collections.abc import Mapping
import contextlib
import dataclasses
import hashlib
import json
import math
import pathlib
import sys

from flwr import app as flwr_app
from flwr import serverapp
import numpy as np

from bfl_tf import datasets, federation
from bfl_tf import runs as runs_lib
from bfl_tf import trained as trained_lib
from bfl_tf.federation import building
from bfl_tf.flower import asking, messages, runs
from bfl_tf.flower import engine as engine_lib
from bfl_tf.flower import nodes as nodes_lib
from bfl_tf.runs import directory, flags_file, task
from bfl_tf.trained import report_files

app = serverapp.ServerApp()


class ServerError(RuntimeError):
  """How a run ended: `code 2: --num_clients=3 ...`."""


@app.main()
def main(grid: serverapp.Grid, context: flwr_app.Context) -> None:
  """Plays the run; where it fails, so does Flower's."""
  try:
    with contextlib.redirect_stdout(_Marked(sys.stdout)):
      do = _score if context.run_config['ask'] else _play
      do(grid, context.run_config)
  except (ValueError, federation.StoppedError) as error:
    raise ServerError(runs.reason(error)) from error


def _play(grid, settings):
  flags = str(settings['flags'])
  config = flags_file.parse(flags.splitlines())
  told, dataset = '', None
  nodes = nodes_lib.Numbered.of(
    grid, flags, config.num_clients, float(settings['node-timeout'])
  )
  introduced = _introduced(config, nodes)
  if introduced:
    _check_no_share(config)
    told = messages.merged(introduced).to_json()
    dataset = _as_told(config, introduced)
  path = str(settings['output-dir'])
  engine = engine_lib.Engine(
    grid, nodes, int(settings['window']), False, path, told,
    # Each look is a request.
    poll_seconds=1.0,
  )  # fmt: skip
  nodes_say = _said(introduced) if dataset is not None else ''
  if dataset is not None:
    _check_unchanged(f'--output_dir={path}', path, introduced, dataset)
  runs_lib.Run(
    config, path, engine=engine, dataset=dataset, nodes=nodes_say
  ).play()


def _score(grid, settings):
  """Has nodes with files of their own score a finished run's model."""
  path = pathlib.Path(str(settings['output-dir']))
  trained = trained_lib.load(path)
  config = trained.config
  flags = '\n'.join(flags_file.flag_lines(config))
  nodes = nodes_lib.Numbered.of(
    grid, flags, config.num_clients, float(settings['node-timeout'])
  )
  introduced = _introduced(config, nodes)
  if not introduced:
    raise ValueError(
      f'--run={path}: its nodes have no files of their own: leave --superlink '
      'out.'
    )
  told = _as_told(config, introduced)
  _check_unchanged(f'--run={path}', path, introduced, told)
  seconds = float(settings['answer-timeout']) or config.client_timeout
  report = asking.ask(grid, nodes, introduced, trained, seconds or math.inf)
  report_files.write(path, report)
  for line in report_files.lines(path, report, of_nodes=True):
    # An empty line would not be told from Flower's own.
    print(line or ' ')


def _check_unchanged(flag, path, introduced, dataset):
  """Refuses a run that nodes began with other files, by what they say."""
  said, asked = (
    pathlib.Path(path, name) for name in (directory.NODES, directory.TASK)
  )
  if said.exists():
    same = said.read_text() == _said(introduced)
  else:
    # Killed before it wrote them down.
    same = not asked.exists() or task.read(asked).is_like(task.Task.of(dataset))
  if not same:
    raise ValueError(
      f'{flag}: files of nodes have changed since it began; put them back, or '
      'choose another directory.'
    )


def _said(introduced) -> str:
  """Returns a digest of what each node said of its file, by client."""
  digests = {
    str(client): hashlib.sha256(said.to_json().encode()).hexdigest()[:16]
    for client, said in sorted(introduced.items())
  }
  return json.dumps(digests, indent=2) + '\n'


def _introduced(config, nodes) -> dict[int, messages.Introduction]:
  """What nodes say of files of their own, by client; nothing if none has one.

  Raises:
    ValueError: some have and some have not, or one's answer cannot be read.
  """
  clients = range(config.num_clients)
  said = nodes.introductions(clients)
  without = sorted(set(clients) - set(said))
  if said and without:
    raise ValueError(
      f'clients {", ".join(map(str, without))} have no file of their own and '
      'others do: start their SuperNodes with --node-config \'data="FILE"\'.'
    )
  return {client: _read(client, text) for client, text in said.items()}


def _check_no_share(config):
  held = config.num_server_examples or config.server_fraction
  if held and not config.server_dataset:
    raise ValueError(
      '--num_server_examples and --server_fraction take examples of clients, '
      'which have files of their own: name --server_dataset in place of them.'
    )


def _as_told(config, introduced):
  """The data set that a server has, of whose own examples all are tests."""
  own = building.dataset(config.replace(calibration_fraction=0.0), {})
  return as_told(own, introduced)


def _read(client, text):
  try:
    return messages.Introduction.from_json(text)
  except ValueError as error:
    raise ValueError(f'client {client}: {error}.') from error


def as_told(
  own: datasets.Dataset, said: Mapping[int, messages.Introduction]
) -> datasets.Dataset:
  """Returns the data set that a server has: tests, and of clients the counts.

  Args:
    own: of the server's own file: all its examples are tests.
    said: by client number, from 0.

  Returns:
    Training examples are labels alone, as many of each class and client as
    there are on the nodes; their inputs are zeros.

  Raises:
    ValueError: features differ, or the server's file has a class that no
      client has.
  """
  everybody = messages.merged(said)
  try:
    everybody.merge(messages.Introduction.of(own))
  except ValueError as error:
    raise ValueError(f'--dataset={own.name}: {error}.') from error
  unknown = set(messages.names(own)) - set(everybody.classes)
  if unknown:
    raise ValueError(
      f'--dataset={own.name} has the class {min(unknown)!r}, which no client '
      'has.'
    )
  own = everybody.tell(own)
  places = {name: number for number, name in enumerate(everybody.classes)}
  y, ids = [], []
  for client, introduction in sorted(said.items()):
    for name, number in introduction.counts.items():
      y.append(np.full(number, places[name], np.int32))
    ids.append(np.full(sum(introduction.counts.values()), client))
  labels = np.concatenate(y)
  nothing = np.zeros(1, everybody.dtype)
  return dataclasses.replace(
    own,
    train=datasets.Split(
      np.broadcast_to(nothing, (labels.size, *everybody.shape)),
      labels,
      np.concatenate(ids),
    ),
    test=datasets.Split(
      np.concatenate([own.train.x, own.test.x]),
      np.concatenate([own.train.y, own.test.y]),
    ),
    rows=None,
  )


class _Marked:
  """A stream whose lines are told apart from Flower's own."""

  def __init__(self, stream):
    self._stream = stream

  def write(self, text: str) -> int:
    """Marks what begins a line."""
    begins = text.strip('\n')
    return self._stream.write(f'{runs.MARK}{text}' if begins else text)

  def flush(self) -> None:
    """Passes it on."""
    self._stream.flush()

  def isatty(self) -> bool:
    """A bar would be drawn over Flower's lines."""
    return False
