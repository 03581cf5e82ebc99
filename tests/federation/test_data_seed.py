"""Tests of --data_seed, which the data follow, and nothing else."""

import hashlib

import numpy as np
import toys

SETTINGS = {
  'clients_per_round': 3,
  'num_server_examples': 9,
  'validation_split': 0.1,
  'attack': 'random_model',
}
# Of the release before --data_seed.
DIGEST = 'bc40f555dd20abbf'


def digest(**changes):
  """Returns a digest of partition, held-out examples and clients, and model."""
  pieces = toys.experiment(**SETTINGS, **changes)
  found = hashlib.sha256()
  held = pieces.server_indices, pieces.dataset.validation.x
  for array in (*pieces.partition, *held, *pieces.personal_rows().values()):
    found.update(array.tobytes())
  sample, seed = pieces.plan.privacy.sample, pieces.config.seed_of_data
  rounds = [sample(seed, number) for number in range(5)]
  bad = [bool(pieces.plan.attacks_of(client)) for client in range(6)]
  found.update(repr([rounds, bad]).encode())
  return found.hexdigest()[:16], pieces.initial_weights().mean


def test_data_follow_their_own_seed_and_weights_that_of_the_run():
  data, mean = digest(seed=3)
  same_data, other_mean = digest(seed=4, data_seed=3)
  other_data, same_mean = digest(seed=3, data_seed=4)
  assert data == same_data == DIGEST != other_data
  assert not np.array_equal(mean, other_mean)
  np.testing.assert_array_equal(mean, same_mean)
