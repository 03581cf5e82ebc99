"""Methods with a Laplace approximation on each client."""

from bfl_tf import training
from bfl_tf.methods.method import Method
from bfl_tf.server import pooling

_POOL = pooling.LogLinearPooling()

laplace = Method(
  (_POOL,),
  optimizer=training.Laplace(prior_scale=1.0),
  learning_rate=0.003,
  tune={'laplace.prior_scale': 'log:0.1:10'},
  help='A Laplace approximation on each client, pooled by log-linear pooling.',
)

# The precision of a client already contains its number of examples.
fola = Method(
  (_POOL,),
  optimizer=training.Laplace(prior_scale=1.0, update_prior=True),
  learning_rate=0.003,
  weighting=pooling.Equal(),
  tune={'laplace.prior_scale': 'log:0.1:10'},
  help='FOLA (Liu et al. 2021): a Laplace approximation on each client, with '
  'the broadcast posterior as the prior of each round, pooled by precision. '
  'Other than the public code: the Fisher information is estimated with '
  'sampled labels, and Adam replaces SGD.',
)

# The prior is wide, so that the precision is that of the data.
fedfisher = Method(
  (_POOL,),
  optimizer=training.Laplace(prior_scale=100.0),
  learning_rate=0.003,
  weighting=pooling.Equal(),
  tune={'laplace.prior_scale': 'log:1:100'},
  needs={'num_rounds': 1},
  help='FedFisher with a diagonal Fisher matrix (Jhunjhunwala et al. 2024): '
  'one round; the mean of the clients weighted by their Fisher information. '
  'Other than the public code: the minimum of the quadratic form is computed '
  'exactly, not by gradient descent, and the Fisher information is estimated '
  'with sampled labels.',
)
