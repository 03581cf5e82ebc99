"""Samples of the weights at regular steps of a client's training.

With a Langevin optimizer, they are draws from the client's posterior. The
server combines the samples of all clients into one ensemble.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from bfl_tf.declare.settings import setting
from bfl_tf.parts import Keep, Local, Outcome, Sent, Server, Start
from bfl_tf.server import posteriors
from bfl_tf.startup import tf


@dataclasses.dataclass(frozen=True)
class Thinning(Local, Server):
  """Sends the last samples of each client, `[num_samples * P]`.

  The server makes the ensemble S: the pooled model with each sample as its
  mean.
  """

  burn_in: int = setting(1000, 'Number of steps before the first sample.', ge=0)
  every: int = setting(100, 'Number of steps between two samples.', ge=1)
  num_samples: int = setting(
    10, 'Number of samples that a client sends: the last ones.', ge=1
  )

  name = 'thinning'

  @property
  def group_names(self):
    return ('S',)

  def check(self, facts):
    for _, steps, _ in facts.trainings:
      found = max(0, steps - self.burn_in) // self.every
      facts.need(
        found >= self.num_samples,
        f'--thinning.num_samples={self.num_samples} of at most the {found} '
        f'samples that {steps} steps give with '
        f'--thinning.burn_in={self.burn_in} and --thinning.every={self.every}',
      )

  def begin(self, ctx, memory):
    size = tf.size(ctx.broadcast.mean)
    zeros = tf.zeros([self.num_samples, size])
    return Start(ctx.start, (zeros, tf.constant(0)))

  def after(self, mean, carry, step):
    samples, count = carry
    past = step.index + 1 - self.burn_in
    taken = (past > 0) & (past % self.every == 0)
    place = count % self.num_samples
    samples = tf.cond(
      taken,
      lambda: tf.tensor_scatter_nd_update(samples, [[place]], mean[tf.newaxis]),
      lambda: samples,
    )
    return mean, (samples, count + tf.cast(taken, tf.int32))

  def end(self, model, carry, trace):
    samples, _ = carry
    return Sent(model, extra=tf.reshape(samples, [-1]))

  def terms(self, update, weight, broadcast):
    return {'samples': Keep(update.extras[self.name])}

  def step(self, model, sums, slot, ctx):
    pooled = ctx.pooled
    means = np.concatenate(
      [own.reshape(-1, pooled.mean.size) for own in sums['samples']]
    )
    samples = posteriors.Models(
      len(means), lambda index: pooled.replace_mean(means[index])
    )
    groups = {'S': ctx.tools.recalibrated(samples, ctx.seed)}
    return Outcome(model, slot, groups=groups)


thinning = Thinning
