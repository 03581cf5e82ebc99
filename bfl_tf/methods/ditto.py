"""Ditto (Li et al. 2021): a second, personal model of each client.

It stays close to the global model.
"""

from bfl_tf.methods.method import Method

ditto = Method(
  {
    'variant': 'deterministic',
    'client_parts': 'ditto',
    'ditto.weight': 0.1,
    'pooling': 'nwa',
  },
  tune={'ditto.weight': 'log:0.01:10'},
  help=__doc__,
)
