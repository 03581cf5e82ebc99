"""FedAvg with an optimizer on the server."""

from bfl_tf.methods.method import Method

fedavgm = Method(
  {
    'variant': 'deterministic',
    'pooling': 'nwa',
    'server_step': 'momentum',
    'momentum.decay': 0.9,
  },
  tune={'momentum.decay': 'uniform:0.3:0.95'},
  help='FedAvgM (Hsu et al. 2019): momentum on the server.',
)

fedadam = Method(
  {
    'variant': 'deterministic',
    'pooling': 'nwa',
    'server_step': 'adaptive',
    'adaptive.optimizer': 'adam',
    'adaptive.learning_rate': 0.01,
  },
  tune={'adaptive.learning_rate': 'log:0.001:0.1'},
  help='FedAdam (Reddi et al. 2021): Adam on the server.',
)
