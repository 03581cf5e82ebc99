"""Figure 1: the Swiss roll, and the models inside the clients' simplex.

The run is repeated, which takes seconds, since clients' models are not stored.
"""

from collections.abc import Mapping, Sequence
import pathlib

from matplotlib.figure import Figure
import numpy as np

from bfl_tf import federation, metrics, seeds, training
from bfl_tf import runs as runs_lib
from bfl_tf.server import posteriors
from experiments.harness import planes

NUM_MODELS = 400


def draw_data(runs: Mapping[str, Sequence[pathlib.Path]]) -> Figure:
  """Draws the training points, one panel per client (Figure 1a)."""
  experiment = _experiment(runs)
  train = experiment.dataset.train
  return planes.points(
    {
      f'client {k}': (train.x[indices], train.y[indices])
      for k, indices in enumerate(experiment.partition, start=1)
    }
  )


def draw_simplex(
  runs: Mapping[str, Sequence[pathlib.Path]],
) -> Figure:
  """Draws models sampled by Eq. 7, coloured by accuracy (Figure 1b)."""
  return planes.simplex(*models(_experiment(runs)))


def models(
  experiment: federation.Experiment, num_models: int = NUM_MODELS
) -> tuple[np.ndarray, np.ndarray]:
  """Samples models of the last round by Eq. 7.

  Returns:
    coefficients: gamma, `[num_models, num_clients]`.
    accuracy: Accuracy on the test set, `[num_models]`.
  """
  config, test = experiment.config, experiment.dataset.test
  result = federation.initial_state(experiment)
  for _ in range(config.num_rounds):
    result = federation.federated_round(experiment, result.state)
  clients, model = list(result.predictors['C']), result.state.model
  mixture = posteriors.SimplexMixture(
    [client.values for client in clients],
    np.ones(len(clients)),
    config.get('dirichlet_weights.alpha'),
  )
  seed = seeds.named(config.seed, 'simplex')
  gamma = mixture.sample_coefficients(num_models, seed)
  accuracy = []
  for values in mixture.combine(gamma).numpy():
    probs = training.predict(
      experiment.workers, model.replace_values(values), test.x, seed=seed
    ).mean
    accuracy.append(metrics.accuracy(probs, test.y))
  return gamma.numpy(), np.array(accuracy)


def _experiment(runs):
  ((run,),) = runs.values()
  return federation.Experiment.build(runs_lib.read_config(run))
