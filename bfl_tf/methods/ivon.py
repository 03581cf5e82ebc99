"""IVON clients (Shen et al. 2024), averaged."""

from bfl_tf.methods.method import Method

ivon = Method(
  {
    'variant': 'deterministic',
    'client_optimizer': 'ivon',
    'client_learning_rate': 0.003,
    'ivon.initial_scale': 0.02,
    'ivon.prior_scale': 1,
    'ivon.temperature': 0.01,
    'pooling': 'nwa',
  },
  tune={
    'ivon.temperature': 'log:0.001:1',
    'ivon.initial_scale': 'log:0.003:0.05',
  },
  help=__doc__,
)
