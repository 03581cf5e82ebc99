"""A round on Flower: the usual app, ours on its simulation, ours without it.

All three have the same clients, images, network and number of processes.
"""

import contextlib
import csv
import json
import pathlib
import statistics as stats
import sys
import tempfile
from typing import Any

import numpy as np

from bfl_tf import config as config_lib
from bfl_tf import flower
from bfl_tf import runs as runs_lib
from bfl_tf.flower import simulation
from experiments.benchmarks import measuring, random_images, usual_app

_USUAL = 'from experiments.benchmarks import flower; flower.play_usual_app()'
_FEW_CLIENTS, _FEATURES = 10, 784


def run(
  name: str, num_workers: int, repeats: int, num_clients: int, num_batches: int
) -> None:
  """Prints a line for each of the three: seconds a round, and the ratio."""
  shape, _, batch_size = random_images.SHAPES[name]
  with tempfile.TemporaryDirectory(prefix='bfl_tf_benchmark_') as folder:
    data = pathlib.Path(folder, 'images.npz')
    _write(data, shape, num_clients * num_batches * batch_size)
    config = _config(
      data, num_workers, num_clients, batch_size,
      model=name, num_rounds=1 + repeats,
    )  # fmt: skip
    # By Flower's own default of two CPUs a client, and with one as ours.
    for cpus in (1, 2):
      usual = _usual_app(config, pathlib.Path(folder), cpus)
      what = f'usual app, {cpus} CPU a client'
      print(f'{name:9} {what:27} {_a_round(usual)}', flush=True)
    for what, play, aim in (
      ('on Flower', flower.simulate, 3),
      ('local engine', runs_lib.run, 5),
    ):
      rows = _rows(play, config, pathlib.Path(folder, what))
      # Without the first round, which traces.
      seconds = [float(row['train_seconds']) for row in rows[1:]]
      ratio = stats.median(usual) / stats.median(seconds)
      print(
        f'{name:9} {what:27} {_a_round(seconds)}, {ratio:.2f} times as fast '
        f'(at least {aim} wanted)',
        flush=True,
      )


def memory(num_workers: int, num_clients: int, num_params: int) -> None:
  """Prints one line: the server's peak memory with few clients and with all."""
  count = 2 * max(num_clients, _FEW_CLIENTS)
  units = max(1, num_params // (_FEATURES + 11))
  peaks = []
  with tempfile.TemporaryDirectory(prefix='bfl_tf_benchmark_') as folder:
    data = pathlib.Path(folder, 'vectors.npz')
    _write(data, (_FEATURES,), count)
    for clients in (_FEW_CLIENTS, num_clients):
      config = _config(
        data, num_workers, clients,
        # Whoever has how many of them takes one step.
        count,
        model='mlp', num_rounds=2,
        settings={'mlp.hidden_units': (units,)},
      )  # fmt: skip
      rows = _rows(flower.simulate, config, pathlib.Path(folder, str(clients)))
      peaks.append(float(rows[-1]['peak_memory_mib']))
  print(
    f'the server peaks at {peaks[0]:.0f} MiB with {_FEW_CLIENTS} clients, at '
    f'{peaks[1]:.0f} MiB with {num_clients}: {peaks[1] / peaks[0]:.2f} times '
    '(at most 1.5 wanted); their updates have '
    f'{int(rows[-1]["bytes_up"]) / 2**20:.0f} MiB',
    flush=True,
  )


def _config(data, num_workers, num_clients, batch_size, **values):
  """A run that is all training: its only evaluations are the first and last."""
  return config_lib.Config(
    dataset=str(data),
    num_workers=num_workers,
    num_clients=num_clients,
    batch_size=batch_size,
    client_learning_rate=1e-3,
    eval_every=values['num_rounds'],
    final_num_mc_samples=1,
    num_mc_samples=1,
    **values,
  )


def _usual_app(config, folder, cpus) -> list[float]:
  """Returns seconds of rounds, with so many CPUs a client app."""
  said = folder / 'seconds.json'
  settings: dict[str, Any] = {
    'model': config.model,
    'data': config.dataset,
    'batch-size': config.batch_size,
    'num-rounds': config.num_rounds,
    'seconds': str(said),
  }
  processes = simulation.num_processes(config)
  settings['processes'], settings['cpus'] = processes, cpus
  settings['num-clients'] = config.num_clients
  simulation.play(_USUAL, [json.dumps(settings)], sys.stderr.write)
  found = json.loads(said.read_text())
  if set(found['replies']) != {config.num_clients}:
    raise RuntimeError(f'Of the usual app clients failed: {found["replies"]}.')
  return found['seconds'][1:]


def play_usual_app() -> None:
  """In a process of its own: an app whose settings are given as JSON."""
  (text,) = simulation.given()
  settings = json.loads(text)
  server, client = usual_app.apps(settings)
  simulation.run_apps(
    server, client, settings['num-clients'], settings['processes'],
    settings['cpus'],
  )  # fmt: skip


def _rows(play, config, path) -> list[dict[str, str]]:
  """Plays a run and returns the rows of its rounds, without the start."""
  with contextlib.redirect_stdout(sys.stderr):
    play(config, path)
  with (path / 'metrics.csv').open() as file:
    rows = list(csv.DictReader(file))[1:]
  if any(int(row['clients_pooled']) != config.num_clients for row in rows):
    raise RuntimeError(f'{path.name}: clients failed.')
  return rows


def _a_round(seconds) -> str:
  return f'{measuring.spread(seconds)} s a round'


def _write(path, shape, count):
  rng = np.random.default_rng(0)
  x = rng.integers(0, 256, (count, *shape), np.uint8)
  y = (np.arange(count) % 10).astype(np.int32)
  np.savez(path, x_train=x, y_train=y, x_test=x[:100], y_test=y[:100])
