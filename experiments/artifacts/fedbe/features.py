"""Figure 10: what the layer before the last sees, by t-SNE.

The paper draws three classes of the test sets of CIFAR-10 and CIFAR-100; here
it is the test set that the runs were scored on.
"""

from collections.abc import Mapping, Sequence
import pathlib

from matplotlib import figure as figure_lib
import numpy as np
import tf_keras
import threadpoolctl

from bfl_tf import federation, plots, weights
from bfl_tf.datasets import preprocessing
from bfl_tf.federation import checkpoints, pieces
from experiments import flags as config_flags

# Of CIFAR-10: automobile, cat, frog.
CLASSES = (1, 3, 6)


def draw(
  runs: Mapping[str, pathlib.Path], classes: Sequence[int] = CLASSES
) -> figure_lib.Figure:
  """Draws the test examples of some classes, a panel a run.

  Args:
    runs: run directories by the name in the title.
    classes: whose examples.
  """
  from sklearn import manifold  # A second to import.

  groups = {}
  for name, run in runs.items():
    vectors, labels = of_test_set(run)
    chosen = np.isin(labels, classes)
    # Its threads wait for each other in every step: on busy cores for long.
    with threadpoolctl.threadpool_limits(1):
      places = manifold.TSNE(random_state=0).fit_transform(vectors[chosen])
    groups[name] = places, labels[chosen]
  return plots.points(groups)


def of_test_set(run: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
  """Returns the inputs of the last layer, under a run's last model.

  Args:
    run: the directory of a run whose variant is deterministic.

  Returns:
    vectors: `[num_examples, num_features]`.
    labels: `[num_examples]`.

  Raises:
    FileNotFoundError: it has no checkpoint.
  """
  fields = config_flags.read_file(federation.Config, run / 'flags.txt')
  config = federation.Config(**fields)
  state = checkpoints.restore(run / 'checkpoints')
  if state is None:
    raise FileNotFoundError(f'{run} has no checkpoint to read.')
  dataset = pieces.dataset(config, {})
  model = pieces.model_builder(config, dataset)()
  weights.write(weights.Variables.of(model), state.model)
  before_last = tf_keras.Model(model.input, model.layers[-1].input)
  inputs = preprocessing.normalize(dataset.test.x, dataset.mean, dataset.std)
  return before_last.predict(inputs, verbose=0), dataset.test.y
