"""MC dropout (Gal & Ghahramani 2016) on each client, averaged."""

from bfl_tf.methods.method import Method

mc_dropout = Method(
  {'variant': 'mc_dropout', 'mc_dropout.rate': 0.2, 'pooling': 'nwa'},
  tune={'mc_dropout.rate': 'uniform:0.05:0.5'},
  help=__doc__,
)
