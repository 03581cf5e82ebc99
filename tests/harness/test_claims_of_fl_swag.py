"""FL-SWAG's cells keep what they compare comparable, at every scale."""

import pytest

from experiments.artifacts.fl_swag import choosing, deep


def test_the_samplers_prior_is_the_same_everywhere():
  """N times weight decay; a validation share is of all."""
  samplers = [
    cell for (row, _), cell in deep.CALIBRATION.items() if 'LD' in row
  ]
  assert len(samplers) == 6
  for cell in (*samplers, *choosing.RATES.values()):
    for scale in ('laptop', 'paper'):
      config = cell.config(scale, 0)
      if config.dataset.endswith(':cifar10'):
        # The ResNet-18 keeps 10 000 for itself.
        examples = 40_000
      else:
        examples = {'laptop': 10_000, 'paper': 60_000}[scale]
        assert config.train_split == (
          'train[:10000]' if scale == 'laptop' else 'train'
        )
      assert examples * config.client_weight_decay == pytest.approx(30)
