"""FedBE (Chen & Chao 2021): an ensemble, distilled with SWA.

It contains the average, the clients and samples of a Gaussian over client
models. Needs unlabeled examples on the server, such as
--num_server_examples=1000. The starts of SWA are fractions of the steps, so
that the method fits every number of examples.
"""

from bfl_tf.methods.method import Method

fedbe = Method(
  {
    'variant': 'deterministic',
    'pooling': 'nwa',
    'refine': 'distil',
    'ensemble.groups': 'A+C+S',
    'ensemble.num_samples': 10,
    'ensemble.posterior': 'gaussian',
    'distil.teachers': 'A+C+S',
    'distil.sharpening': 2,
    'distil.optimizer': 'swa',
    'distil.epochs': 20,
    'distil.batch_size': 128,
    'distil.learning_rate': 0.001,
    'distil.swa_min_learning_rate': 0.0004,
    'distil.swa_start': 0.2,
    'distil.swa_cycle': 0.02,
  },
  tune={'distil.learning_rate': 'log:0.0005:0.01'},
  help=__doc__,
)
