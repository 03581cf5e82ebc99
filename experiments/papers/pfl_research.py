"""The network and the simulated privacy of pfl-research's CIFAR-10 benchmark.

References:
  F. Granqvist et al. pfl-research: Simulation framework for accelerating
  research in private federated learning. NeurIPS 2024, datasets and benchmarks.
  `simple_cnn` and `noise_cohort_size` of its public code.
"""

from __future__ import annotations

import dataclasses

from bfl_tf import models
from bfl_tf.declare.settings import setting
from bfl_tf.models import layers
from bfl_tf.server import privacy
from bfl_tf.startup import tf_keras


def cnn(input_shape, num_classes, kernel_initializer, seed):
  """Two convolutions and one hidden layer: 1.6 million weights."""
  deterministic = models.VARIANTS['deterministic']()
  blocks = models.Blocks(deterministic, kernel_initializer, seed)
  relu = tf_keras.layers.ReLU
  inputs = x = tf_keras.Input(input_shape)
  for filters in (32, 64):
    x = relu()(blocks.conv(filters, 3, x, padding='valid'))
  x = layers.Dropout(0.25)(tf_keras.layers.MaxPooling2D()(x))
  x = relu()(blocks.dense(128, tf_keras.layers.Flatten()(x)))
  logits = blocks.dense(num_classes, layers.Dropout(0.5)(x))
  return tf_keras.Model(inputs, logits)


@dataclasses.dataclass(frozen=True)
class SimulatedPopulation(privacy.CentralPrivacy):
  """Noise and epsilon of a larger population than that of the run.

  The clients of the run do not have this guarantee.
  """

  population: int = setting(1000000, 'Simulated number of clients.', ge=1)
  cohort: int = setting(1000, 'Simulated number of clients per round.', ge=1)

  name = 'simulated'

  @property
  def noise_scale(self) -> float:
    """Standard deviation of the noise, with that of a cohort on the mean."""
    return super().noise_scale * self.expected_clients / self.cohort

  def notes(self):
    first, *others = super().notes()
    return (
      f'{first}: a SIMULATED population; the clients of this run do not have '
      'this guarantee',
      *others,
    )


simulated = SimulatedPopulation
