"""Figure 10: features of the last hidden layer, by t-SNE.

Three classes are drawn: test examples by their labels, and images of CIFAR-100
by their predicted classes.
"""

from collections.abc import Callable, Mapping, Sequence
import functools
import pathlib

from matplotlib.figure import Figure
import numpy as np
import threadpoolctl

import bfl_tf
from bfl_tf import data
from bfl_tf.analysis import features
from bfl_tf.federation import run_data
from experiments.harness import planes

# Classes of CIFAR-10: automobile, cat, frog.
CLASSES = (1, 3, 6)
# A subset for which t-SNE takes seconds.
_ELSEWHERE, _SPLIT = 'cifar100', 'test[:5000]'


def draw(
  runs: Mapping[str, Sequence[pathlib.Path]],
  vectors_and_classes: Callable[[pathlib.Path], tuple[np.ndarray, np.ndarray]],
  classes: Sequence[int] = CLASSES,
) -> Figure:
  """Draws the examples of some classes, one panel per run."""
  from sklearn import manifold  # The import takes a second.

  groups = {}
  for name, (run,) in runs.items():
    vectors, labels = vectors_and_classes(run)
    chosen = np.isin(labels, classes)
    # t-SNE needs more points than its perplexity.
    perplexity = min(30.0, max(1.0, (chosen.sum() - 1) / 3))
    # Threads of t-SNE synchronize in every step, which is slow on busy cores.
    with threadpoolctl.threadpool_limits(1):
      places = manifold.TSNE(
        perplexity=perplexity, random_state=0
      ).fit_transform(vectors[chosen])
    groups[name] = places, labels[chosen]
  return planes.points(groups)


def of_test_set(run: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
  """Returns the inputs of the last layer of a run's final model.

  Args:
    run: Directory of a run with the deterministic variant.

  Returns:
    vectors: `[num_examples, num_features]`.
    labels: `[num_examples]`.

  Raises:
    ValueError: The run is not finished.
  """
  trained = bfl_tf.load(run)
  test = run_data.load(trained.config).test
  return features.hidden(trained, test.x), test.y


def of_cifar100(run: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
  """Returns features of CIFAR-100's images with the predicted classes.

  Runs on other data than CIFAR-10 use their own training images instead.
  """
  trained = bfl_tf.load(run)
  dataset = run_data.load(trained.config)
  images = dataset.train.x
  if dataset.name == 'cifar10':
    images = data.load_unlabeled(
      _ELSEWHERE, split=_SPLIT, like=dataset, resize=True
    )
  classes = trained.predict(images).probs.argmax(-1)
  return features.hidden(trained, images), classes


draw_test_set = functools.partial(draw, vectors_and_classes=of_test_set)
draw_cifar100 = functools.partial(draw, vectors_and_classes=of_cifar100)
