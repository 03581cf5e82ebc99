"""FedPA (Al-Shedivat et al. 2021): clients sample their posteriors by SGD.

The server averages deltas that contain the samples' covariance.
"""

from bfl_tf.methods.method import Method

fedpa = Method(
  {
    'variant': 'deterministic',
    'client_parts': 'fedpa',
    'fedpa.samples': 5,
    'fedpa.period': 2,
    'fedpa.shrinkage': 0.01,
    'client_optimizer': 'sgd',
    'client_learning_rate': 0.1,
    'sgd.momentum': 0.9,
    'pooling': 'nwa',
  },
  tune={'fedpa.shrinkage': 'log:0.001:1'},
  help=__doc__,
)
