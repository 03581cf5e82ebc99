"""MC dropout (Gal & Ghahramani 2016) on each client, averaged."""

from bfl_tf.methods.method import Method
from bfl_tf.models import variants

mc_dropout = Method(
  variant=variants.MCDropout(rate=0.2),
  tune={'mc_dropout.rate': 'uniform:0.05:0.5'},
  help=__doc__,
)
