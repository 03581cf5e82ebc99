"""Samples of the posterior: global models of some rounds of a chain."""

import dataclasses
import math

import numpy as np

from bfl_tf.declare.settings import setting
from bfl_tf.parts import Outcome, Server
from bfl_tf.startup import tfp

# Larger samples would not fit into the memory of many machines.
_MAX_GIB = 4


@dataclasses.dataclass(frozen=True)
class KeepSamples(Server):
  """Keeps global models, evenly spread over the rounds after the burn-in.

  They are the group `chain`, and are stored with the run.
  """

  number: int = setting(10, 'Number of samples that the run keeps.', ge=1)
  burn_in: float = setting(
    0.5, 'Fraction of the rounds before the first sample.', ge=0, lt=1
  )

  name = 'keep_samples'

  @property
  def group_names(self):
    return ('chain',)

  def check(self, facts):
    num_rounds = facts.config.num_rounds
    left = self._rounds_left(num_rounds)
    facts.need(
      self.number <= left,
      f'{self.number} rounds after the burn-in, and only {left} of '
      f'--num_rounds={num_rounds} follow it: raise --num_rounds, or lower '
      '--keep_samples.number or --keep_samples.burn_in',
    )
    if facts.model:
      sizes = (len_of.shape[0] for len_of in facts.model[:4])
      gib = self.number * sum(sizes) * 4 / 2**30
      facts.need(
        gib <= _MAX_GIB,
        f'{gib:.3g} GiB for the samples and each checkpoint, more than '
        f'{_MAX_GIB}: lower --keep_samples.number',
      )

  def _rounds_left(self, num_rounds):
    return num_rounds - math.floor(self.burn_in * num_rounds)

  def slot(self, model):
    sizes = {'mean': model.mean.size, 'buffers': model.buffers.size}
    return {
      **{
        name: np.zeros([self.number, size], np.float32)
        for name, size in sizes.items()
      },
      'count': np.int32(0),
    }

  def step(self, model, sums, slot, ctx):
    left = self._rounds_left(ctx.num_rounds)
    place = ctx.round + 1 - (ctx.num_rounds - left)
    count = int(slot['count'])
    report: dict[str, float] = {}
    if place > 0 and place * self.number // left > count:
      slot = {name: np.array(values) for name, values in slot.items()}
      slot['mean'][count] = model.mean
      slot['buffers'][count] = model.buffers
      count += 1
      slot['count'] = np.int32(count)
    report['chain_samples'] = count
    if count == self.number:
      report |= _diagnostics(slot['mean'])
    groups = {'chain': self.stored(slot, model)} if count else {}
    return Outcome(model, slot, report, groups)

  def stored(self, slot, model):
    return [
      model.replace_mean(mean)._replace(buffers=buffers)
      for mean, buffers in zip(slot['mean'], slot['buffers'])
    ][: int(slot['count'])]


def split_r_hat(samples: np.ndarray) -> np.ndarray:
  """Returns split R-hat, `[dimension]` (Gelman et al. 2013, section 11.4).

  `tfp.mcmc.potential_scale_reduction` is another function: it has no root,
  and another factor on `between`.
  """
  half = samples.shape[1] // 2
  halves = samples[:, : 2 * half].reshape(-1, half, samples.shape[-1])
  within = halves.var(1, ddof=1, dtype=np.float64).mean(0)
  between = halves.mean(1, dtype=np.float64).var(0, ddof=1)
  with np.errstate(divide='ignore', invalid='ignore'):  # A constant weight.
    return np.sqrt(1 - 1 / half + between / within)


def _diagnostics(samples) -> dict[str, float]:
  """Returns the median over weights of effective size and split R-hat."""
  if len(samples) < 4:
    return {}
  sizes = tfp.mcmc.effective_sample_size(samples)
  return {
    'chain_effective_size': float(np.nanmedian(sizes)),
    'chain_r_hat': float(np.nanmedian(split_r_hat(samples[np.newaxis]))),
  }
