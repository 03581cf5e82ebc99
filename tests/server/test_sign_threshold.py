"""Tests of the sign threshold."""

import numpy as np
import pytest
import toys
from toys import model, stepped

from bfl_tf import statistics
from bfl_tf.methods import fedavgm
from experiments.papers.noniid_techniques import sign_threshold


def votes(reference, updates, sizes):
  weighed = [
    (statistics.ClientUpdate(client, size, model(mean, 0.5)), size)
    for client, (mean, size) in enumerate(zip(updates, sizes))
  ]
  return toys.sums(sign_threshold.SignThreshold(), weighed, reference)


def test_votes_and_means_match_hand_computed_values():
  """Updates are positive, negative or mixed; votes ignore client sizes."""
  reference = model([1, 1, 1, 1], 0.5)
  sums = votes(
    reference,
    [[2, 0, 9, 1], [3, -1, 0, 5], [2, 0, 0.5, 5]],
    sizes=[1, 1, 100],
  )
  assert sums['votes'].tolist() == [3, -3, -1, 2]
  pooled = model([4, -2, 0.5, 6], 0.25, (), [7])
  for threshold, expected, share in (
    (0, [4, -2, 0.5, 6], 0),
    (1, [4, -2, 0.5, 6], 0),
    (2, [4, -2, 1, 6], 0.25),
    (3, [4, -2, 1, 1], 0.5),
  ):
    part = sign_threshold.SignThreshold(threshold)
    found = stepped(part, pooled, reference, None, sums)
    assert found.model.loc.tolist() == expected
    assert found.report == {'zero_rate_fraction': share}
    # The part changes only means.
    assert found.model.scale.tolist() == [0.25] * 4
    assert found.model.buffers.tolist() == [7]


def test_the_smallest_float32_update_counts_as_a_vote():
  reference = model([1e-38], 0.5)
  near = np.nextafter(np.float32(1e-38), np.float32(1))
  sums = votes(reference, [[near], [near]], [1, 1])
  assert sums['votes'].tolist() == [2]


@pytest.mark.parametrize('threshold', [0, 2])
def test_several_rounds_match_the_equations_of_the_paper(threshold):
  """Eq. 1 to 4: v is updated by the mean update; w + eta_theta v."""
  rng = np.random.default_rng(0)
  decay, sizes = 0.5, [3, 1]
  share = np.array(sizes) / sum(sizes)
  w, v = rng.normal(size=30), np.zeros(30)
  ours = model(w, 0.5)
  momentum = fedavgm.Momentum(decay)
  sign = sign_threshold.SignThreshold(threshold)
  slot = momentum.slot(ours)
  for _ in range(6):
    updates = rng.normal(size=[2, 30])
    v = decay * v + share @ updates
    agree = np.abs(np.sign(updates).sum(0)) >= threshold
    w = w + agree * v

    reference, clients = ours, ours.mean + updates.astype(np.float32)
    sums = votes(reference, clients, sizes)
    pooled = reference.replace_mean(share @ clients)
    pooled, slot, *_ = stepped(momentum, pooled, reference, slot)
    ours = stepped(sign, pooled, reference, None, sums).model
    np.testing.assert_allclose(ours.mean, w, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(slot, v, rtol=1e-5, atol=1e-5)
  # The velocity contains all updates, also of weights with rate 0.
  assert agree.all() == (threshold == 0)
