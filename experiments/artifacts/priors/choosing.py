"""The digits on which settings are chosen: the test examples are not there."""

import dataclasses

from bfl_tf import datasets


def digits() -> datasets.Dataset:
  """Returns the digits with a fifth of the training examples as the test."""
  dataset = datasets.load('digits', validation_split=0.2, seed=0)
  return dataclasses.replace(dataset, test=dataset.validation)
