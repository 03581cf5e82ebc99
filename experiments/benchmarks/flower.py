"""Benchmark of a typical app on Flower's simulation."""

import json
import pathlib
import sys
import types

from bfl_tf import training
from bfl_tf.config.config import Config
from bfl_tf.flower import simulation
from experiments.benchmarks import flower_baseline

_SETTINGS = (
  'dataset', 'model', 'variant', 'augment', 'batch_size', 'num_rounds',
  'num_clients', 'client_optimizer', 'client_learning_rate',
)  # fmt: skip
_USUAL = 'from experiments.benchmarks import flower; flower.run_usual_app()'


def usual(config: Config, folder: str, framework: str, cpus: int) -> float:
  """Returns the seconds of the app's last round, with `cpus` per client app."""
  path = pathlib.Path(folder, 'seconds.json')
  settings = {name: getattr(config, name) for name in _SETTINGS} | {
    'framework': framework,
    'seconds': str(path),
    'processes': training.bounded(config.num_workers),
    'cpus': cpus,
  }
  simulation.execute(_USUAL, [json.dumps(settings)], sys.stderr.write)
  found = json.loads(path.read_text('utf-8'))
  if set(found['replies']) != {config.num_clients}:
    raise RuntimeError(f'Of the usual app clients failed: {found["replies"]}.')
  return found['seconds'][-1]


def run_usual_app() -> None:
  """Runs a plain Flower app in its own process, with settings as JSON."""
  (text,) = simulation.given()
  settings = types.SimpleNamespace(**json.loads(text))
  server, client = flower_baseline.apps(settings)
  simulation.run_apps(
    server, client, settings.num_clients, settings.processes, settings.cpus
  )
