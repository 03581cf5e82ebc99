"""Tests of site statistics, whose sums give the scores of all examples."""

import functools

import numpy as np
import pytest

from bfl_tf import metrics
from bfl_tf.analysis import prediction_sets, site_statistics

SETS = prediction_sets.PredictionSets(
  (0.9, 0.95), {'': (0.1, 0.14)}, {'': 99}, 1, 'lac'
)


def examples(size, num_classes=4, seed=0):
  rng = np.random.default_rng(seed)
  return (
    rng.dirichlet(np.full(num_classes, 0.5), size),
    rng.integers(num_classes - 1, size=size),
  )


@pytest.mark.parametrize('sets', [None, SETS])
@pytest.mark.parametrize('parts', [1, 2, 7])
def test_merged_statistics_give_the_scores_of_all_examples(parts, sets):
  probs, y = examples(200)
  rows = np.array_split(np.arange(200), parts)
  whole = functools.reduce(
    site_statistics.SiteStatistics.merge,
    (site_statistics.SiteStatistics.of(probs[r], y[r], sets) for r in rows),
  )
  row = whole.row(sets)
  by_hand = {
    'num_examples': 200,
    'accuracy': metrics.accuracy(probs, y),
    'balanced_accuracy': metrics.balanced_accuracy(probs, y),
    'nll': metrics.negative_log_likelihood(probs, y),
    'ece': metrics.expected_calibration_error(probs, y),
  }
  for level, members in zip((0.9, 0.95), sets.classes(probs) if sets else ()):
    by_hand[f'coverage_{level:g}'] = members[np.arange(200), y].mean()
    by_hand[f'size_{level:g}'] = members.sum(-1).mean()
    single = members.sum(-1) == 1
    by_hand[f'single_{level:g}'] = single.mean()
    right = members[np.arange(200), y][single]
    by_hand[f'single_accuracy_{level:g}'] = right.mean()
  # The area under a curve is not a sum over sites.
  auroc = row.pop('auroc')
  alone = np.nanmean(metrics.one_against_rest(probs, y))
  assert auroc == (alone if parts == 1 else None)
  assert set(row) == set(by_hand)
  for name, value in by_hand.items():
    assert row[name] == pytest.approx(value, rel=1e-12), name


def test_scores_of_a_class_equal_those_computed_by_hand():
  probs, y = examples(50)
  found = site_statistics.SiteStatistics.of(probs, y, SETS)
  of_class = y == 1
  (members, _), row = SETS.classes(probs), found.class_row(1, SETS)
  assert row['num_examples'] == of_class.sum()
  assert row['recall'] == np.mean(probs[of_class].argmax(1) == 1)
  assert row['coverage_0.9'] == members[of_class, 1].mean()
  assert row['size_0.9'] == members[of_class].sum(1).mean()
  assert row['single_0.9'] == np.mean(members[of_class].sum(1) == 1)
  assert row['auroc'] == metrics.one_against_rest(probs, y)[1]
  # The last class has no examples.
  assert found.class_row(3, SETS) == {'num_examples': 0}


@pytest.mark.parametrize('size', [1, 8, 134])
def test_statistics_of_real_examples_are_accepted(size):
  probs, y = examples(size, seed=size)
  found = site_statistics.SiteStatistics.of(probs.astype(np.float32), y, SETS)
  found.check(size)
  # The server expects these shapes and types.
  like = site_statistics.SiteStatistics.of(
    np.eye(4)[:1], np.zeros(1, int), SETS
  )
  for given, wanted in zip(found, like, strict=True):
    assert (given.shape, given.dtype) == (wanted.shape, wanted.dtype)
  found.merge(found).check(2 * size)
  with pytest.raises(ValueError, match='its counts do not match'):
    found.check(size + 1)


@pytest.mark.parametrize(
  'name, value',
  [
    ('auroc', lambda a: a + np.inf),
    ('auroc', lambda a: a + 1),
    ('binned', lambda a: 0 * a + 1e9),
    ('sizes', lambda a: a + 4 * 50),
    ('examples', lambda a: a + 2**62),
    ('examples', lambda a: a - 99),
    ('loss', lambda a: -a),
    ('right', lambda a: a + 50),
    ('single', lambda a: 0 * a),
  ],
)
def test_statistics_that_no_examples_can_have_are_rejected(name, value):
  found = site_statistics.SiteStatistics.of(*examples(50), SETS)
  with pytest.raises(ValueError, match='examples'):
    found._replace(**{name: value(getattr(found, name))}).check(50)
