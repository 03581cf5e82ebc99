"""Samples of the weights at regular steps of a client's training.

With a Langevin optimizer, they are draws from the client's posterior. The stage
combines the samples of all clients into one ensemble.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from bfl_tf import server, training
from bfl_tf.declare.settings import setting
from bfl_tf.server import posteriors
from bfl_tf.startup import tf


@dataclasses.dataclass(frozen=True, eq=False)
class Stage(server.Stage):
  """Ensemble S: the pooled model with each client sample as its mean."""

  resources: server.Resources

  name = 'samples'
  statistics = (posteriors.Updates(),)
  predictors = ('S',)

  def __call__(self, state, reference, pooled, statistics, seed):
    size = pooled.mean.size
    updates = statistics[self.statistics[0]].updates
    means = np.concatenate(
      [u.extras[Part.name].reshape(-1, size) for u in updates]
    )
    samples = posteriors.Models(
      len(means), lambda index: pooled.replace_mean(means[index])
    )
    return state, {}, {'S': self.resources.recalibrated(samples, seed)}


@dataclasses.dataclass(frozen=True)
class Part(training.Part):
  """Client part that sends its last samples, `[num_samples * P]`."""

  burn_in: int = setting(1000, 'Number of steps before the first sample.', ge=0)
  every: int = setting(100, 'Number of steps between two samples.', ge=1)
  num_samples: int = setting(
    10, 'Number of samples that a client sends: the last ones.', ge=1
  )

  name = 'thinning'
  server_stage = Stage

  def check(self, num_steps: int, num_examples: int) -> None:
    """Raises a ValueError if training gives fewer than `num_samples`."""
    found = max(0, num_steps - self.burn_in) // self.every
    if found < self.num_samples:
      raise ValueError(
        f'--thinning.num_samples={self.num_samples} exceeds the {found} '
        f'samples that {num_steps} steps give with '
        f'--thinning.burn_in={self.burn_in} and --thinning.every={self.every}.'
      )

  def begin(self, start, shared, memory):
    size = tf.size(start.mean)
    return tf.zeros([self.num_samples, size]), tf.constant(0)

  def after_step(self, mean, carry, step):
    samples, count = carry
    past = step.index + 1 - self.burn_in
    taken = (past > 0) & (past % self.every == 0)
    place = count % self.num_samples
    samples = tf.cond(
      taken,
      lambda: tf.tensor_scatter_nd_update(samples, [[place]], mean[tf.newaxis]),
      lambda: samples,
    )
    return None, (samples, count + tf.cast(taken, tf.int32))

  def finish(self, model, carry, trace):
    samples, _ = carry
    return model, tf.reshape(samples, [-1]), None


thinning = Part
