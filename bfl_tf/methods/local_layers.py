"""Methods with layers that stay on the clients."""

from bfl_tf.methods.method import Method

_FLAGS = {
  'variant': 'deterministic',
  'client_parts': 'local_layers',
  'pooling': 'nwa',
}

fedper = Method(
  {**_FLAGS, 'local_layers.layers': 'head'},
  help='FedPer (Arivazhagan et al. 2019): the last layer stays on the clients.',
)

fedbn = Method(
  {**_FLAGS, 'local_layers.layers': 'batch_norm'},
  help='FedBN (Li et al. 2021): batch normalization stays on the clients. '
  'Needs a network with batch normalization, such as --model=resnet20.',
)
