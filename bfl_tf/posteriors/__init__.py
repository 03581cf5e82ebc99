"""Distributions over global models, as Statistics, and draws of them."""

from bfl_tf.posteriors.dirichlet import SimplexMixture
from bfl_tf.posteriors.draws import Draws, Models, shares_of
from bfl_tf.posteriors.gaussian import (
  FittedGaussian,
  normal,
  of_model,
  ReleasedGaussian,
)
from bfl_tf.posteriors.updates import Updates
