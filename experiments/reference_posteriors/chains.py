"""HMC chains and their convergence diagnostics.

References:
  R. M. Neal. MCMC using Hamiltonian dynamics. Handbook of MCMC, 2011.
  M. D. Hoffman, A. Gelman. The No-U-Turn sampler. JMLR 2014, section 3.2.
  A. Gelman, D. B. Rubin. Inference from iterative simulation. 1992.
  A. Gelman et al. Bayesian Data Analysis, 3rd ed., section 11.4. 2013.
  C. J. Geyer. Practical Markov chain Monte Carlo. 1992.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bfl_tf import seeds
from bfl_tf.server import keep_samples
from bfl_tf.startup import tf, tfp


class Chains(NamedTuple):
  """Samples of several Markov chains.

  Attributes:
    samples: `[num_chains, num_samples, dimension]` float32.
  """

  samples: np.ndarray
  accepted: np.ndarray
  step_size: np.ndarray

  def r_hat(self) -> np.ndarray:
    """Returns split R-hat, `[dimension]`; near 1 if the half chains agree."""
    return keep_samples.split_r_hat(self.samples)

  def effective_size(self) -> np.ndarray:
    """Returns the effective sample size of all chains, `[dimension]`."""
    by_sample = np.swapaxes(self.samples, 0, 1)
    sizes = tfp.mcmc.effective_sample_size(
      by_sample, filter_beyond_positive_pairs=True, cross_chain_dims=1
    )
    return sizes.numpy()


def sample(
  density: Callable[[tf.Tensor], tf.Tensor],
  starts: np.ndarray,
  *,
  num_samples: int,
  burn_in: int,
  step_size: float,
  seed: np.ndarray,
  num_leapfrog_steps: int = 20,
  together: bool = False,
) -> Chains:
  """Samples chains, each from its own start.

  Args:
    density: Log density of `[dimension]`.
    starts: `[num_chains, dimension]`.
    num_samples: Number of samples per chain.
    burn_in: Number of burn-in steps. In the first 80 % of them, the step size
      adapts to an acceptance of 0.75.
    step_size: Initial step size.
    seed: `[2]` int32.
    num_leapfrog_steps: Number of leapfrog steps per proposal.
    together: Whether `density` is of all chains, `[num_chains, dimension]`, so
      that they run at once. Otherwise, they run one after the other.
  """
  kernel = tfp.mcmc.DualAveragingStepSizeAdaptation(
    tfp.mcmc.HamiltonianMonteCarlo(density, step_size, num_leapfrog_steps),
    num_adaptation_steps=int(0.8 * burn_in),
    target_accept_prob=0.75,
  )

  @tf.function
  def run(start, draw):
    return tfp.mcmc.sample_chain(
      num_samples,
      start,
      kernel=kernel,
      num_burnin_steps=burn_in,
      trace_fn=lambda _, results: (
        tf.exp(tf.minimum(0.0, results.inner_results.log_accept_ratio)),
        results.new_step_size,
      ),
      # The density uses variables, so evaluations must not run in parallel.
      parallel_iterations=1,
      seed=draw,
    )

  if together:
    samples, (accepted, sizes) = run(tf.constant(starts, tf.float32), seed)
    # All chains have one step size.
    size = np.resize(sizes[-1], len(starts))
    by_chain = np.swapaxes(samples.numpy(), 0, 1)
    return Chains(by_chain, accepted.numpy().mean(0), size)
  chains = []
  for number, start in enumerate(starts):
    begin = tf.constant(start, tf.float32)
    samples, (accepted, sizes) = run(begin, seeds.child(seed, number))
    chains.append((samples.numpy(), accepted.numpy().mean(), float(sizes[-1])))
  return Chains(*map(np.stack, zip(*chains)))
