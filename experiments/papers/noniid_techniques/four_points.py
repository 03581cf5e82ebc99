"""Figure 1: four points on which two agents learn contradictory rules.

The labels are an exclusive or of x0 > 4 and x1 > 4. An agent has the points on
one side of x1 = 4, where x0 alone determines the label. On the other side, its
rule is wrong. The clients' models are not stored, so the figure repeats the
run, which takes seconds.
"""

from collections.abc import Mapping, Sequence
import pathlib

from matplotlib.figure import Figure
import numpy as np

import bfl_tf
from bfl_tf import federation, training
from experiments.harness import planes

_MIDDLE = 4.0


def four_points() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
  """Returns the training points, and a lattice of the plane for testing."""
  points = np.array([[2, 6], [6, 6], [2, 2], [6, 2]], np.float32)
  places = np.arange(0.25, 8.0, 0.5, np.float32)
  lattice = np.stack(np.meshgrid(places, places), -1).reshape(-1, 2)
  return points, _labels(points), lattice, _labels(lattice)


def halves(
  labels: np.ndarray, *, num_clients: int, seed: int
) -> list[np.ndarray]:
  """Partitions the points in order, so that the first agent has x1 > 4."""
  return np.array_split(np.arange(labels.size, dtype=np.int32), num_clients)


def _labels(x):
  return ((x > _MIDDLE).sum(-1) % 2 == 0).astype(np.int64)


def draw(runs: Mapping[str, Sequence[pathlib.Path]]) -> Figure:
  """Draws the data, and what each model predicts over the plane."""
  x, y, lattice, _ = four_points()
  panels = {'data': (x, y)}
  for name, (run,) in runs.items():
    for model, classes in _predicted(run, lattice).items():
      panels[f'{name} {model}'.strip()] = lattice, classes
  return planes.points(panels)


def _predicted(run, lattice):
  """Returns the classes that a run's model and its clients' models predict."""
  trained = bfl_tf.load(run)
  found = {'': trained.predict(lattice).probs.argmax(-1)}
  experiment = federation.Experiment.build(trained.config)
  result = federation.initial_state(experiment)
  for _ in range(trained.config.num_rounds):
    result = federation.federated_round(experiment, result.state)
  clients = (result.predictors or {}).get('C', ())
  for number, model in enumerate(clients, start=1):
    predictive = training.predict(
      experiment.workers, model, lattice, seed=np.zeros(2, np.int32)
    )
    found[f'agent {number}'] = predictive.mean.argmax(-1)
  return found
