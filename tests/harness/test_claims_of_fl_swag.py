"""FL-SWAG's cells keep what they compare comparable, at every scale."""

import pytest

from experiments.artifacts import fl_swag
from experiments.artifacts.fl_swag import choosing, deep, shared

CLAIMS = {claim.name: claim for claim in fl_swag.CLAIMS}


@pytest.mark.parametrize('scale', ['laptop', 'overnight', 'paper'])
def test_over_epochs_nothing_but_the_features_differs(scale):
  for epochs in deep.EPOCHS:
    ours, theirs = (
      by_epochs[epochs].config(scale, 0)
      for by_epochs in deep.BY_EPOCHS.values()
    )
    assert ours.local_epochs == theirs.local_epochs == epochs
    assert ours.client_weight_decay == theirs.client_weight_decay == 0
    rank = 4 if scale == 'laptop' else 10
    assert ours.get('swag.rank') == theirs.get('swag.rank') == rank


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


def test_near_is_near_from_both_sides():
  compared = CLAIMS['averages_near_centralized'].comparisons
  pairs = {(c.left.cells[0].name, c.right.cells[0].name) for c in compared}
  assert len(pairs) == len(compared) == 16
  assert {(right, left) for left, right in pairs} == pairs
  assert {c.margin for c in compared} == {1.5}


def test_drift_is_asked_from_each_number_of_epochs_to_the_next():
  *falls, _ = CLAIMS['epochs_drift'].comparisons
  assert [c.statement for c in falls] == [
    '5 epochs over 20, shared start',
    '20 epochs over 80, shared start',
  ]


def test_features_that_are_not_there_say_how_they_are_made(
  tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(ValueError, match=r'cifar10\.npz is missing') as found:
    shared.cifar10()
  for part in ('pretrain_cifar10.flags', 'experiments.features', '--output'):
    assert part in str(found.value)
