"""The digits for choosing a prior.

The file is apart from `priors`, because a run depends on the text of the file
that its --dataset names.
"""

import dataclasses

from bfl_tf import data


def digits() -> data.Dataset:
  """Returns the digits with a fifth of the training examples for testing."""
  dataset = data.load('digits', validation_split=0.2, seed=0)
  return dataclasses.replace(dataset, test=dataset.validation)
