"""Tests of thinning, which collects samples along the training."""

import numpy as np
import of_papers
import toys

CHANGES = {
  'client_parts': (of_papers.THINNING,),
  'local_epochs': 4,
  'batch_size': 50,
  'client_optimizer': 'sgld',
}


def sampled(**settings):
  experiment = toys.experiment(num_clients=1, partition='iid', **CHANGES,
                               **settings)  # fmt: skip
  return toys.groups(experiment)


def test_samples_are_the_iterates_of_the_collected_steps():
  # The training has twelve steps: batches of 50 from 150 examples.
  every = {'thinning.burn_in': 0, 'thinning.every': 1}
  state, groups = sampled(**every, **{'thinning.num_samples': 12})
  path = [model.mean for model in groups['S']]
  assert len(path) == 12
  assert np.array_equal(path[-1], state.model.mean)
  assert len({mean.tobytes() for mean in path}) == 12
  thin = {'thinning.burn_in': 4, 'thinning.every': 2}
  _, groups = sampled(**thin, **{'thinning.num_samples': 3})
  # Steps 6, 8, 10, 12 are collected; the newest sample replaces the oldest.
  chosen = [path[step - 1] for step in (12, 8, 10)]
  assert toys.same([m.mean for m in groups['S']], chosen)
