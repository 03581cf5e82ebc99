"""Methods with a Laplace approximation on each client."""

from bfl_tf.methods.method import Method

_FLAGS = {
  'variant': 'deterministic',
  'client_optimizer': 'laplace',
  'client_learning_rate': 0.003,
  'pooling': 'llp',
}

laplace = Method(
  {**_FLAGS, 'laplace.prior_scale': 1},
  tune={'laplace.prior_scale': 'log:0.1:10'},
  help='A Laplace approximation on each client, pooled by log-linear pooling.',
)

fola = Method(
  {
    **_FLAGS,
    'laplace.prior_scale': 1,
    'laplace.update_prior': True,
    'weighting': 'equal',
  },
  tune={'laplace.prior_scale': 'log:0.1:10'},
  help='FOLA (Liu et al. 2021): a Laplace approximation on each client, with '
  'the broadcast posterior as the prior of each round, pooled by precision. '
  'The weights are equal, because the precision of a client already contains '
  'its number of examples. Other than the public code: the Fisher information '
  'is estimated with sampled labels, and Adam replaces SGD.',
)

fedfisher = Method(
  {**_FLAGS, 'laplace.prior_scale': 100, 'weighting': 'equal'},
  tune={'laplace.prior_scale': 'log:1:100'},
  needs={'num_rounds': 1},
  help='FedFisher with a diagonal Fisher matrix (Jhunjhunwala et al. 2024): '
  'one round; the mean of the clients weighted by their Fisher information. '
  'The prior is wide, so that the precision is that of the data. Other than '
  'the public code: the minimum of the quadratic form is computed exactly, not '
  'by gradient descent, and the Fisher information is estimated with sampled '
  'labels.',
)
