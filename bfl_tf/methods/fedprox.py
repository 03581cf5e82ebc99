"""FedProx (Li et al. 2020): a penalty on the distance from the broadcast."""

from bfl_tf.methods.method import Method

fedprox = Method(
  {
    'variant': 'deterministic',
    'client_parts': 'proximal',
    'proximal.weight': 0.01,
    'pooling': 'nwa',
  },
  tune={'proximal.weight': 'log:0.001:1'},
  help=__doc__,
)
