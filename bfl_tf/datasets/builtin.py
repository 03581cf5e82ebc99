"""Small sets that need no download and train in seconds.

Those of scikit-learn have no test split of their own: the same stratified 20 %
is held out whatever the run's seed, so that results compare across seeds.
"""

import numpy as np

from bfl_tf import seeds
from bfl_tf.datasets import arrays, columns, swiss_roll

_TEST_FRACTION = 0.2


def digits() -> columns.Dataset:
  """Digits of 8x8 pixels with values 0 to 16, 10 classes, 1797 examples."""
  bunch = _bunch('digits')
  return _hold_out_test('digits', bunch.images.astype(np.uint8), bunch.target)


def breast_cancer() -> columns.Dataset:
  """Wisconsin breast cancer: 30 features, 2 classes, 569 examples."""
  bunch = _bunch('breast_cancer')
  return _hold_out_test('breast_cancer', bunch.data, bunch.target)


def wine() -> columns.Dataset:
  """Wine recognition: 13 features, 3 classes, 178 examples."""
  bunch = _bunch('wine')
  return _hold_out_test('wine', bunch.data, bunch.target)


def _bunch(name):
  from sklearn import datasets  # A second to import.

  return getattr(datasets, f'load_{name}')()


def _hold_out_test(name, x, y):
  rng = seeds.generator(0, f'test_split_{name}')
  test, train = columns.stratify(y, _TEST_FRACTION, rng)
  return arrays.from_arrays(name, x[train], y[train], x[test], y[test])


BUILTIN = {
  'breast_cancer': breast_cancer,
  'digits': digits,
  'swiss_roll': swiss_roll.swiss_roll,
  'wine': wine,
}
