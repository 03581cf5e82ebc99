"""Samples of the posterior: global models of some rounds of a chain."""

import dataclasses
import math

import numpy as np

from bfl_tf.declare.settings import setting
from bfl_tf.server.stage import Stage
from bfl_tf.startup import tfp

# Larger samples would not fit into the memory of many machines.
_MAX_GIB = 4


@dataclasses.dataclass(frozen=True)
class KeepSamples(Stage):
  """Keeps global models, evenly spread over the rounds after the burn-in.

  They are the group `chain`, and are stored with the run.
  """

  num_rounds: int
  number: int = setting(10, 'Number of samples that the run keeps.', ge=1)
  burn_in: float = setting(
    0.5, 'Fraction of the rounds before the first sample.', ge=0, lt=1
  )

  name = 'keep_samples'
  predictors = ('chain',)

  def __post_init__(self):
    if self.number > self._rounds_left:
      raise ValueError(
        f'--keep_samples.number={self.number}: only {self._rounds_left} of '
        f'--num_rounds={self.num_rounds} rounds follow the burn-in: raise '
        '--num_rounds, or lower --keep_samples.number or '
        '--keep_samples.burn_in.'
      )

  @property
  def _rounds_left(self):
    return self.num_rounds - math.floor(self.burn_in * self.num_rounds)

  def init(self, model):
    """Returns no samples, as arrays `[number, ...]` with a count."""
    sizes = {'mean': model.mean.size, 'buffers': model.buffers.size}
    needed = self.number * sum(sizes.values()) * 4 / 2**30
    if needed > _MAX_GIB:
      raise ValueError(
        f'--keep_samples.number={self.number}: the samples and each checkpoint '
        f'need {needed:.3g} GiB, more than {_MAX_GIB}: lower it.'
      )
    return {
      **{
        name: np.zeros([self.number, size], np.float32)
        for name, size in sizes.items()
      },
      'count': np.int32(0),
    }

  def __call__(self, state, reference, pooled, statistics, seed):
    slot, left = state.slots[self.name], self._rounds_left
    place = state.round + 1 - (self.num_rounds - left)
    count = int(slot['count'])
    info: dict[str, float] = {}
    if place > 0 and place * self.number // left > count:
      slot = {name: np.array(values) for name, values in slot.items()}
      slot['mean'][count] = state.model.mean
      slot['buffers'][count] = state.model.buffers
      count += 1
      slot['count'] = np.int32(count)
    info['chain_samples'] = count
    if count == self.number:
      info |= _diagnostics(slot['mean'])
    state = state._replace(slots={self.name: slot})
    groups = {'chain': self.stored(slot, state.model)} if count else {}
    return state, info, groups

  def stored(self, slot, model):
    return [
      model.replace_mean(mean)._replace(buffers=buffers)
      for mean, buffers in zip(slot['mean'], slot['buffers'])
    ][: int(slot['count'])]


def split_r_hat(samples: np.ndarray) -> np.ndarray:
  """Returns split R-hat, `[dimension]` (Gelman et al. 2013, section 11.4).

  `tfp.mcmc.potential_scale_reduction` is another function: it has no root,
  and another factor on `between`.

  Args:
    samples: `[num_chains, num_samples, dimension]`, at least 4 per chain.
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
