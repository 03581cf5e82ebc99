"""The server's side as Flower's ServerApp: a run of ours over its grid.

Its run config, `[tool.flwr.app.config]` of the app, says what to run:

  flags         the config, a flag a line; nothing if a finished run's nodes are
                to be asked about its model
  output-dir    the run directory, on the server's machine
  simulation    any node plays any client, and lasts no longer than the run
  window        orders that may be out at a time
  node-timeout  seconds in which the clients' nodes must be there
"""

import contextlib
import pathlib
import sys

from flwr import app as flwr_app
from flwr import serverapp

from bfl_tf import federation
from bfl_tf.federation import building, recorded, site_reports, task
from bfl_tf.flower import engine as engine_lib
from bfl_tf.flower import introductions, questions, runs
from bfl_tf.flower import nodes as nodes_lib

app = serverapp.ServerApp()


class ServerError(RuntimeError):
  """How a run ended: `code 2: --num_clients=3 ...`."""


@app.main()
def main(grid: serverapp.Grid, context: flwr_app.Context) -> None:
  """Plays the run; where it fails, so does Flower's."""
  try:
    with contextlib.redirect_stdout(_Marked(sys.stdout)):
      played = _play if context.run_config['flags'] else _ask
      played(grid, context.run_config)
  except (ValueError, federation.StoppedError) as error:
    code = 2 if isinstance(error, ValueError) else 1
    raise ServerError(f'code {code}: {error}') from error


def _play(grid, settings):
  flags = str(settings['flags'])
  config = recorded.parse(flags.splitlines())
  simulated, window = bool(settings['simulation']), int(settings['window'])
  nodes: engine_lib.Nodes
  told, dataset = '', None
  if simulated:
    nodes = nodes_lib.Simulated.of(grid, window)
  else:
    seconds = float(settings['node-timeout'])
    nodes = nodes_lib.Numbered.of(grid, flags, config.num_clients, seconds)
    told, dataset = _told(config, nodes)
  # Elsewhere each look is a request.
  poll_seconds = 0.05 if simulated else 1.0
  path = str(settings['output-dir'])
  engine = engine_lib.Engine(
    grid, nodes, window, simulated, path, told, poll_seconds
  )
  if dataset is not None:
    _check_unchanged(path, dataset)
  federation.Run(config, path, engine=engine, dataset=dataset).play()


def _ask(grid, settings):
  """Has nodes with files of their own score a finished run's model."""
  path = str(settings['output-dir'])
  trained = federation.load(path)
  config = trained.config
  flags = '\n'.join(recorded.flag_lines(config))
  nodes = nodes_lib.Numbered.of(
    grid, flags, config.num_clients, float(settings['node-timeout'])
  )
  _, dataset = _told(config, nodes)
  if dataset is None:
    raise ValueError(
      f'--run={path}: its nodes have no files of their own: leave --superlink '
      'out.'
    )
  _check_unchanged(path, dataset)
  report = questions.ask(grid, nodes, trained)
  site_reports.write(pathlib.Path(path), report)
  for line in site_reports.lines(pathlib.Path(path), report):
    print(line)


def _check_unchanged(path, dataset):
  """Refuses to go on with a run whose nodes have other files by now."""
  file = pathlib.Path(path) / 'task.json'
  if file.exists() and file.read_text() != task.Task.of(dataset).to_json():
    raise ValueError(
      f'--output_dir={path} holds a run of other examples: files of nodes have '
      'changed since; put them back, or choose another directory.'
    )


def _told(config, nodes):
  """What nodes with files of their own say together; nothing if none has one.

  Raises:
    ValueError: some have and some have not, or they do not fit together.
  """
  clients = range(config.num_clients)
  said = nodes.introductions(clients)
  if not said:
    return '', None
  without = sorted(set(clients) - set(said))
  if without:
    raise ValueError(
      f'clients {", ".join(map(str, without))} have no file of their own and '
      'others do: start their SuperNodes with --node-config \'data="FILE"\'.'
    )
  held = config.num_server_examples or config.server_fraction
  if held and not config.server_dataset:
    raise ValueError(
      '--num_server_examples and --server_fraction take examples of clients, '
      'which have files of their own: name --server_dataset in place of them.'
    )
  introduced = {client: _read(client, text) for client, text in said.items()}
  # The server's own examples are tests, all of them.
  own = building.dataset(config.replace(calibration_fraction=0.0), {})
  dataset = introductions.as_told(own, introduced)
  return introductions.merged(introduced).to_json(), dataset


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
    return self._stream.write(f'{runs.MARK}{text}' if text.strip() else text)

  def flush(self) -> None:
    """Passes it on."""
    self._stream.flush()

  def isatty(self) -> bool:
    """A bar would be drawn over Flower's lines."""
    return False
