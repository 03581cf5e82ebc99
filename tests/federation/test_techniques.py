"""Tests of the techniques for non-IID data in the loop."""

import of_papers
import toys

OFF = {
  'client_parts': ('projection', of_papers.GRADIENT_NOISE),
  'projection.radius': 1e6,
  'gradient_noise.scale': 0.0,
  'server_parts': ('momentum', of_papers.SIGN_THRESHOLD),
  'momentum.decay': 0.0,
  'sign_threshold.threshold': 0,
}
COLUMNS = {
  'projection_hit_fraction',
  'velocity_norm',
  'zero_rate_fraction',
}


def test_disabled_techniques_equal_fedavg_bit_for_bit():
  changes = {'variant': 'flipout', 'pooling': 'conflation'}
  changes |= {'clients_per_round': 3}
  plain, infos = toys.execute(toys.experiment(**changes), 3)
  off, others = toys.execute(toys.experiment(**changes, **OFF), 3)
  assert toys.same(plain.model, off.model)
  for info, other in zip(infos, others):
    assert other.keys() - info.keys() == COLUMNS
    assert {k: v for k, v in other.items() if k not in COLUMNS} == info


def test_the_server_fraction_sets_the_number_of_server_examples():
  """The fraction is of 150 examples, a fifth of which may be validation."""
  for split, fraction, number in ((0.0, 0.2, 30), (0.2, 0.05, 6)):
    settings = {'validation_split': split}
    held = toys.experiment(server_fraction=fraction, **settings).server_indices
    same = toys.experiment(num_server_examples=number, **settings)
    assert held.tolist() == same.server_indices.tolist()
    assert len(held) == number
