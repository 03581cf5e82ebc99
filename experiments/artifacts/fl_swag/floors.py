"""How low a client's scale may be: what validation examples say of a floor.

The floor only enters at the end of a client's training, so that one run that
kept its updates (`--refine=ensemble,keep`) tells of all floors: the scales are
lifted and everything is pooled again.
"""

from collections.abc import Callable
import functools
import pathlib

import numpy as np

from bfl_tf import federation
from bfl_tf import runs as runs_lib
from bfl_tf.federation import evaluation
from bfl_tf.online import updates as online
from bfl_tf.runs import checkpoints
from experiments.harness import cells

FLOORS = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)
_FILE = 'floors.json'


def reading(name: str) -> Callable[[pathlib.Path, str], float]:
  """Returns a reader of a score of the run at the floor that is asked for."""
  return functools.partial(_read, name)


def _read(name, directory, floor):
  return cells.asked_once(directory, _FILE, sweep)[floor][name]


def sweep(directory: pathlib.Path) -> dict[str, dict[str, float]]:
  """Returns by floor the scores of a run's clients pooled at that floor."""
  experiment = federation.Experiment.build(runs_lib.read_config(directory))
  state = checkpoints.restore(directory / 'checkpoints')
  begin, kept = online.beginning(experiment, state), online.members(state)
  found = {}
  for floor in FLOORS:
    lifted = {client: _lifted(u, floor) for client, u in kept.items()}
    played = federation.federated_round(
      experiment, begin, functools.partial(_sent, lifted)
    )
    scores = evaluation.evaluate(experiment, played, last=True).scores
    held = np.mean([np.mean(u.model.scale < floor) for u in kept.values()])
    found[f'{floor:g}'] = {
      'accuracy': scores['validation_accuracy'],
      'nll': scores['validation_nll'],
      'ece': scores['validation_ece'],
      'held': float(held),
    }
  return found


def _lifted(update, floor):
  scale = np.maximum(update.model.scale, np.float32(floor))
  return update._replace(model=update.model._replace(scale=scale))


def _sent(updates, experiment, state, clients):
  """An engine in which everybody has trained already."""
  for client, update in updates.items():
    yield federation.Arrival(client, update, {})
