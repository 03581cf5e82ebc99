"""Swiss roll: three arms of a spiral, one arm per class (FedBE, Fig. 1).

Chen & Chao 2021 print no parameters of the problem; those below are our own. A
nearest-neighbour classifier has 99 % accuracy. FedAvg with a learning rate like
the paper's stays far below that in ten rounds.

Notation: a point of arm c at radius r has the angle 2 pi (r + c / 3), and
noise N(0, noise^2) on both coordinates.
"""

import numpy as np

from bfl_tf import seeds
from bfl_tf.data import arrays, columns

NUM_CLASSES = 3
_TRAIN_PER_CLASS = 300
_TEST_PER_CLASS = 1000
_INNER_RADIUS = 0.1  # At 0 the arms would meet.
_NOISE = 0.05  # Neighbouring arms are 1/3 apart along a radius.


def swiss_roll() -> columns.Dataset:
  """Returns three arms of a spiral: 900 training and 3000 test examples.

  Both splits are the same for every seed of a run.
  """
  rng = seeds.generator(0, 'swiss_roll')
  train, test = (draw(rng, n) for n in (_TRAIN_PER_CLASS, _TEST_PER_CLASS))
  return arrays.from_arrays('swiss_roll', *train, *test)


def draw(
  rng: np.random.Generator, num_per_class: int, noise: float = _NOISE
) -> tuple[np.ndarray, np.ndarray]:
  """Draws points of all arms.

  Args:
    rng: Random generator of the radii, which are uniform, and of the noise.
    num_per_class: Number of points per arm.
    noise: Standard deviation of each coordinate; the roll has radius 1.

  Returns:
    Points `[num_examples, 2]` and classes `[num_examples]`, in class order.
  """
  labels = np.repeat(np.arange(NUM_CLASSES), num_per_class)
  radius = rng.uniform(_INNER_RADIUS, 1, labels.size)
  angle = 2 * np.pi * (radius + labels / NUM_CLASSES)
  points = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
  return points + noise * rng.standard_normal(points.shape), labels
