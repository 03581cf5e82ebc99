"""Distributions over global models, and samples from them."""

from bfl_tf.server.posteriors.dirichlet import SimplexMixture
from bfl_tf.server.posteriors.draws import betas_of, Draws, Models, shares_of
from bfl_tf.server.posteriors.gaussian import normal, of_model
