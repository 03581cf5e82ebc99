"""Figure 1: four points on which two agents learn rules that contradict.

The labels are an exclusive or of x0 > 4 and x1 > 4. An agent sees the points
on one side of x1 = 4, where x0 alone decides, and decides the other way round
on the other side. The clients' models are not kept, so the run is played once
more for the figure, which takes seconds.
"""

from collections.abc import Mapping, Sequence
import pathlib

from matplotlib.figure import Figure
import numpy as np

import bfl_tf
from bfl_tf import federation, plots, training

_MIDDLE = 4.0


def four_points() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
  """Returns the points, and a lattice of the plane to be tested on."""
  points = np.array([[2, 6], [6, 6], [2, 2], [6, 2]], np.float32)
  places = np.arange(0.25, 8.0, 0.5, np.float32)
  lattice = np.stack(np.meshgrid(places, places), -1).reshape(-1, 2)
  return points, _labels(points), lattice, _labels(lattice)


def halves(
  labels: np.ndarray, *, num_clients: int, seed: int
) -> list[np.ndarray]:
  """A partition: in their order, so that x1 > 4 is the first agent's."""
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
  return plots.points(panels)


def _predicted(run, lattice):
  """Returns the classes of a run's model, and of its clients' if it has any."""
  trained = bfl_tf.load(run)
  found = {'': trained.predict(lattice).probs.argmax(-1)}
  experiment = federation.Experiment.build(trained.config)
  played = federation.initial_state(experiment)
  for _ in range(trained.config.num_rounds):
    played = federation.federated_round(experiment, played.state)
  clients = (played.predictors or {}).get('C', ())
  for number, model in enumerate(clients, start=1):
    predictive = training.predict(
      experiment.workers, model, lattice, seed=np.zeros(2, np.int32)
    )
    found[f'agent {number}'] = predictive.probs.argmax(-1)
  return found
