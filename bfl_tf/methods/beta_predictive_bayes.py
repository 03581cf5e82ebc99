"""Beta-Predictive Bayes (Hasan et al. 2024): one round.

The server interpolates between the mixture and the product of the clients'
predictions and distils the result. Needs labeled examples on the server, such
as --num_server_examples=1000.
"""

from bfl_tf.methods.method import Method

beta_predictive_bayes = Method(
  {
    'variant': 'deterministic',
    'pooling': 'nwa',
    'refine': 'distil',
    'ensemble.groups': 'C+B',
    'ensemble.fits_beta': True,
    'distil.teachers': 'B',
    'distil.sharpening': 1,
    'distil.optimizer': 'sgd',
    'distil.epochs': 50,
    'distil.learning_rate': 0.01,
  },
  needs={'num_rounds': 1},
  help=__doc__,
)
