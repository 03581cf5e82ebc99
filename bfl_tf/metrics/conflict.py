"""Frequency of conflicting predictions between models.

References:
  M. S. Ozdayi et al. Improving accuracy of federated learning in non-IID
  settings. arXiv:2010.15582, section 3.1.
"""

import numpy as np
from numpy import typing as npt


def hypothesis_conflict(classes: npt.ArrayLike) -> float:
  """Returns the fraction of examples that two models classify differently.

  Args:
    classes: Predicted classes, integers `[num_models, num_examples]`, of at
      least two models.
  """
  classes = np.asarray(classes)
  votes = [(classes == c).sum(0) for c in np.unique(classes)]
  agreeing = sum((vote * (vote - 1)).mean() for vote in votes)
  return float(1 - agreeing / (len(classes) * (len(classes) - 1)))
