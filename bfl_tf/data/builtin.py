"""Small data sets that need no download and train in seconds.

The sets of scikit-learn have no test split. The same stratified 20 % are held
out for every seed, so that results of different seeds are comparable.
"""

from collections.abc import Callable
import functools

import numpy as np

from bfl_tf import seeds
from bfl_tf.data import arrays, columns

_TEST_FRACTION = 0.2


def _of_sklearn(name):
  from sklearn import datasets  # The import takes a second.

  bunch = getattr(datasets, f'load_{name}')()
  is_numeric = name == 'diabetes'
  x, y = bunch.data, bunch.target
  if name == 'digits':
    x = bunch.images.astype(np.uint8)
  rng = seeds.generator(0, f'test_split_{name}')
  strata = columns.Split(x, y).strata
  test, train = columns.stratify(strata, _TEST_FRACTION, rng)
  return arrays.from_arrays(
    name, x[train], y[train], x[test], y[test], is_numeric=is_numeric
  )


# Wisconsin breast cancer: 30 features, 2 classes, 569 examples. Digits: 8x8
# pixels, 10 classes, 1797 examples. Diabetes: 10 features, a number as label,
# 442 examples. Wine: 13 features, 3 classes, 178 examples.
BUILTIN: dict[str, Callable[[], columns.Dataset]] = {
  'breast_cancer': functools.partial(_of_sklearn, 'breast_cancer'),
  'diabetes': functools.partial(_of_sklearn, 'diabetes'),
  'digits': functools.partial(_of_sklearn, 'digits'),
  'wine': functools.partial(_of_sklearn, 'wine'),
}
