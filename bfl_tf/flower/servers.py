"""The server's side as Flower's ServerApp: a run of ours over its grid.

Its run config, `[tool.flwr.app.config]` of the app, says what to run:

  flags         the config, a flag a line
  output-dir    the run directory, on the server's machine
  ask           have a finished run's nodes score its model; without flags
  answer-timeout  of that: seconds for an answer; 0: the run's --client_timeout
  window        orders that may be out at a time
  node-timeout  seconds in which the clients' nodes must be there
"""

import contextlib
import hashlib
import json
import math
import pathlib
import sys

from flwr import app as flwr_app
from flwr import serverapp

from bfl_tf import federation
from bfl_tf import runs as runs_lib
from bfl_tf import trained as trained_lib
from bfl_tf.federation import building
from bfl_tf.flower import engine as engine_lib
from bfl_tf.flower import introductions, questions, runs
from bfl_tf.flower import nodes as nodes_lib
from bfl_tf.runs import directory, task
from bfl_tf.runs import flags_file as recorded
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
  config = recorded.parse(flags.splitlines())
  told, dataset = '', None
  nodes = nodes_lib.Numbered.of(
    grid, flags, config.num_clients, float(settings['node-timeout'])
  )
  introduced = _introduced(config, nodes)
  if introduced:
    _check_no_share(config)
    told = introductions.merged(introduced).to_json()
    dataset = _as_told(config, introduced)
  path = str(settings['output-dir'])
  engine = engine_lib.Engine(
    grid, nodes, int(settings['window']), False, path, told,
    # Each look is a request.
    poll_seconds=1.0,
  )  # fmt: skip
  nodes_say = _said(introduced) if dataset is not None else ''
  if dataset is not None and not _is_unchanged(path, introduced, dataset):
    raise ValueError(
      f'--output_dir={path} holds a run of other examples: files of nodes have '
      'changed since, or a version holds other rows out; put them back, or '
      'choose another directory.'
    )
  runs_lib.Run(
    config, path, engine=engine, dataset=dataset, nodes=nodes_say
  ).play()


def _score(grid, settings):
  """Has nodes with files of their own score a finished run's model."""
  path = pathlib.Path(str(settings['output-dir']))
  trained = trained_lib.load(path)
  config = trained.config
  flags = '\n'.join(recorded.flag_lines(config))
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
  if not _is_unchanged(path, introduced, told):
    raise ValueError(
      f'--run={path}: files of nodes have changed since the run, or a version '
      'holds other rows out; put them back, or run it anew.'
    )
  seconds = float(settings['answer-timeout']) or config.client_timeout
  report = questions.ask(grid, nodes, introduced, trained, seconds or math.inf)
  report_files.write(path, report)
  for line in report_files.lines(path, report, of_nodes=True):
    # An empty line would not be told from Flower's own.
    print(line or ' ')


def _is_unchanged(path, introduced, dataset) -> bool:
  """Whether nodes have the files that the run began with, by what they say."""
  said, asked = (
    pathlib.Path(path, name) for name in (directory.NODES, directory.TASK)
  )
  if said.exists():
    return said.read_text() == _said(introduced)
  # Killed before it wrote them down.
  return not asked.exists() or task.read(asked).is_like(task.Task.of(dataset))


def _said(introduced) -> str:
  """Returns a digest of what each node said of its file, by client."""
  digests = {
    str(client): hashlib.sha256(said.to_json().encode()).hexdigest()[:16]
    for client, said in sorted(introduced.items())
  }
  return json.dumps(digests, indent=2) + '\n'


def _introduced(config, nodes) -> dict[int, introductions.Introduction]:
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
  return introductions.as_told(own, introduced)


def _read(client, text):
  try:
    return introductions.Introduction.from_json(text)
  except ValueError as error:
    raise ValueError(f'client {client}: {error}.') from error


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
