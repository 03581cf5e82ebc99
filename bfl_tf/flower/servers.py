"""Flower's ServerApp, which runs a config or evaluates a finished run.

Keys of its run config, `[tool.flwr.app.config]` of the app:

  flags           flags of the run, one per line; unused with `ask`
  output-dir      the run directory on the server's machine
  ask             evaluate a finished run on its nodes
  answer-timeout  seconds for a reply to `ask`; 0: the run's --client_timeout
  sets, sets-by   score and groups of the prediction sets of `ask`
  event, threshold, recalibrate
                  risk of an event, of `ask`
  window          maximum number of orders without a reply
  node-timeout    seconds to wait for the clients' nodes
"""

from collections.abc import Mapping
import contextlib
import dataclasses
import json
import math
import pathlib
import sys

from flwr import app as flwr_app
from flwr import serverapp
import numpy as np

from bfl_tf import analysis, data, federation, run_files, runs
from bfl_tf.analysis import coefficients, report_files, risk
from bfl_tf.federation import run_data, stopping
from bfl_tf.flower import data_summaries, federated_evaluation, superlink
from bfl_tf.flower.engine import Engine
from bfl_tf.flower.nodes import SuperNodes
from bfl_tf.runs import directory, run_config

app = serverapp.ServerApp()


class ServerError(RuntimeError):
  """The end of a failed run: `code 2: --num_clients=3 ...`."""


@app.main()
def main(grid: serverapp.Grid, context: flwr_app.Context) -> None:
  """Runs a config or an evaluation; its error also ends Flower's run."""
  try:
    with contextlib.redirect_stdout(_MarkedStream(sys.stdout)):
      do = _score if context.run_config['ask'] else _execute
      do(grid, context.run_config)
  except (ValueError, federation.StoppedError) as error:
    raise ServerError(superlink.reason(error)) from error


def _execute(grid, settings):
  config = run_config.parse(str(settings['flags']).splitlines())
  path, overwrite = str(settings['output-dir']), bool(settings['overwrite'])
  # An unsuitable directory is rejected before the wait for nodes.
  directory.RunDirectory(path, overwrite).check(config)
  nodes, introduced = _introduced(grid, config, settings)
  summary, dataset, digests = '', None, {}
  if introduced:
    if config.num_server_examples or config.server_fraction:
      raise ValueError(
        '--num_server_examples and --server_fraction take examples from '
        'clients, whose files stay on their nodes: remove both '
        '(--server_parts=distil can use --server_dataset).'
      )
    summary = data_summaries.merged(introduced).to_json()
    if not config.quiet_data:
      for line in data_summaries.far_sites(introduced):
        print(f'warning: {stopping.clean(line)}')
    # All examples of the server's own file are tests.
    own = run_data.load(config.replace(calibration_fraction=0.0), {})
    dataset, digests = with_summaries(own, introduced), _digests(introduced)
  engine = Engine(nodes, int(settings['window']), path, summary, digests)
  run = runs.Run(
    config,
    path,
    engine=engine,
    dataset=dataset,
    nodes=_as_json(digests) if digests else '',
    overwrite=overwrite,
  )
  print(runs.table(run.execute()))


def _score(grid, settings):
  """Evaluates a finished run on nodes with their own files."""
  path = pathlib.Path(str(settings['output-dir']))
  trained = analysis.load(path)
  config = trained.config
  if not (path / run_files.NODES).exists():
    raise ValueError(
      f'--run={path}: its nodes have no files of their own: remove --superlink.'
    )
  nodes, introduced = _introduced(grid, config, settings)
  run_directory = directory.RunDirectory(path)
  run_directory.check_nodes(_as_json(_digests(introduced)))
  seconds = float(settings['answer-timeout']) or config.client_timeout
  with run_directory.locked('run'):
    report = federated_evaluation.FederatedEvaluation(
      nodes, introduced, trained, str(settings['sets']),
      str(settings['output-dir']), seconds or math.inf,
      str(settings['sets-by']),
      risk.Risk(
        settings['event'], settings['threshold'], settings['recalibrate']
      ),
    ).report()  # fmt: skip
    report_files.write(path, report)
    effects = coefficients.write(path, trained)
  for line in (*effects, *report_files.lines(path, report, of_nodes=True)):
    # `_MarkedStream` marks no empty lines, and unmarked lines are not shown.
    print(line or ' ')


def _digests(introduced) -> dict[int, str]:
  return {client: s.digest for client, s in sorted(introduced.items())}


def _as_json(digests) -> str:
  return json.dumps(digests, indent=2) + '\n'


def _introduced(grid, config, settings):
  """Waits for the nodes of all clients."""
  flags = '\n'.join(run_config.flag_lines(config))
  nodes = SuperNodes.of(
    grid, flags, config.num_clients, float(settings['node-timeout'])
  )
  summaries = {c: nodes.summaries[c] for c in range(config.num_clients)}
  without = [client for client, text in summaries.items() if not text]
  if len(without) == len(summaries):
    return nodes, {}
  if without:
    raise ValueError(
      f'clients {", ".join(map(str, without))} have no file of their own and '
      'others do: start their SuperNodes with --node-config \'data="FILE"\'.'
    )
  introduced = {}
  for client, text in summaries.items():
    try:
      introduced[client] = data_summaries.DataSummary.from_json(text)
    except ValueError as error:
      why = stopping.clean(str(error))
      raise ValueError(f'client {client}: {why}.') from error
  return nodes, introduced


def with_summaries(
  own: data.Dataset, summaries: Mapping[int, data_summaries.DataSummary]
) -> data.Dataset:
  """Returns the server's data, with placeholders for the clients' examples."""
  united = data_summaries.merged(summaries)
  try:
    united.merge(data_summaries.DataSummary.of(own))
    own = united.tell(own)
  except ValueError as error:
    raise ValueError(f'--dataset={own.name}: {error}.') from error
  places = {name: number for number, name in enumerate(united.classes)}
  y, ids = [], []
  for client, data_summary in sorted(summaries.items()):
    for name, number in data_summary.counts.items():
      y.append(np.full(number, places[name], np.int32))
    ids.append(np.full(sum(data_summary.counts.values()), client))
  # The moments of numeric labels are in the summary.
  labels = np.concatenate(y).astype(own.train.y.dtype)
  nothing = np.zeros(1, united.dtype)
  return dataclasses.replace(
    own,
    train=data.Split(
      np.broadcast_to(nothing, (labels.size, *united.shape)),
      labels,
      np.concatenate(ids),
    ),
    test=data.Split(
      np.concatenate([own.train.x, own.test.x]),
      np.concatenate([own.train.y, own.test.y]),
    ),
    # Its sites are those of the server's file, not client numbers.
    validation=own.validation._replace(ids=None),
    rows=None,
  )


class _MarkedStream:
  """A stream that marks its lines, to distinguish them from Flower's own."""

  def __init__(self, stream):
    self._stream = stream

  def write(self, text: str) -> int:
    """Writes text with the mark before each line that is not empty."""
    lines = text.splitlines(keepends=True)
    return self._stream.write(
      ''.join(superlink.MARK + x if x.strip('\n') else x for x in lines)
    )

  def flush(self) -> None:
    """Flushes the wrapped stream."""
    self._stream.flush()
