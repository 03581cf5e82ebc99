"""Flower's simulation: a round of the usual app; the memory of our server."""

import contextlib
import csv
import json
import pathlib
import sys
import tempfile

from bfl_tf import config as config_lib
from bfl_tf import flower
from bfl_tf.flower import simulation
from experiments.benchmarks import random_images, usual_app

_USUAL = 'from experiments.benchmarks import flower; flower.play_usual_app()'
_FEW_CLIENTS, _FEATURES = 10, 784


def usual(config: config_lib.Config, folder: str, cpus: int) -> float:
  """Returns the seconds of its last round, with so many CPUs a client app."""
  said = pathlib.Path(folder, 'seconds.json')
  settings = {
    'model': config.model,
    'variant': config.variant,
    'augment': config.augment,
    'data': config.dataset,
    'batch-size': config.batch_size,
    'num-rounds': config.num_rounds,
    'num-clients': config.num_clients,
    'seconds': str(said),
    'processes': simulation.num_processes(config),
    'cpus': cpus,
  }
  simulation.play(_USUAL, [json.dumps(settings)], sys.stderr.write)
  found = json.loads(said.read_text())
  if set(found['replies']) != {config.num_clients}:
    raise RuntimeError(f'Of the usual app clients failed: {found["replies"]}.')
  return found['seconds'][-1]


def memory(num_workers: int, num_clients: int, num_params: int) -> None:
  """Prints one line: the server's peak memory with few clients and with all."""
  count = 2 * max(num_clients, _FEW_CLIENTS)
  units = max(1, num_params // (_FEATURES + 11))
  peaks = []
  with tempfile.TemporaryDirectory(prefix='bfl_tf_benchmark_') as folder:
    data = pathlib.Path(folder, 'vectors.npz')
    random_images.write(data, (_FEATURES,), count)
    for clients in (_FEW_CLIENTS, num_clients):
      config = random_images.config(
        data, num_workers, clients,
        # Whoever has how many of them takes one step.
        count,
        model='mlp', num_rounds=2,
        settings={'mlp.hidden_units': (units,)},
      )  # fmt: skip
      rows = _rows(config, pathlib.Path(folder, str(clients)))
      peaks.append(float(rows[-1]['peak_memory_mib']))
  print(
    f'the server peaks at {peaks[0]:.0f} MiB with {_FEW_CLIENTS} clients, at '
    f'{peaks[1]:.0f} MiB with {num_clients}: {peaks[1] / peaks[0]:.2f} times '
    '(at most 1.5 wanted); their updates have '
    f'{int(rows[-1]["bytes_up"]) / 2**20:.0f} MiB',
    flush=True,
  )


def play_usual_app() -> None:
  """In a process of its own: an app whose settings are given as JSON."""
  (text,) = simulation.given()
  settings = json.loads(text)
  server, client = usual_app.apps(settings)
  simulation.run_apps(
    server, client, settings['num-clients'], settings['processes'],
    settings['cpus'],
  )  # fmt: skip


def _rows(config, path) -> list[dict[str, str]]:
  """Plays a run and returns the rows of its rounds, without the start."""
  with contextlib.redirect_stdout(sys.stderr):
    flower.simulate(config, path)
  with (path / 'metrics.csv').open() as file:
    rows = list(csv.DictReader(file))[1:]
  if any(int(row['clients_pooled']) != config.num_clients for row in rows):
    raise RuntimeError(f'{path.name}: clients failed.')
  return rows
