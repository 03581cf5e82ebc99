"""pFedBayes (Zhang et al. 2022): a personal posterior of each client.

Its prior is the global posterior. The temperature is the paper's zeta.
"""

from bfl_tf.methods.method import Method

pfedbayes = Method(
  {
    'variant': 'flipout',
    'flipout.initial_scale': 0.05,
    'flipout.temperature': 1,
    'client_parts': 'pfedbayes',
    'pfedbayes.rate': 0.001,
    'pooling': 'nwa',
  },
  tune={'flipout.temperature': 'log:0.001:1'},
  help=__doc__,
)
