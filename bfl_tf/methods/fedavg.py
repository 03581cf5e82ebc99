"""FedAvg (McMahan et al. 2017): the average of deterministic models.

References:
  H. B. McMahan et al. Communication-efficient learning of deep networks from
  decentralized data. AISTATS 2017.
  G. Huang et al. Snapshot ensembles: train 1, get M for free. ICLR 2017.
"""

from bfl_tf.methods.method import Method
from bfl_tf.server import KeepSamples

fedavg = Method(help=__doc__)

fedavg_snapshots = Method(
  (KeepSamples(number=5, burn_in=0.5),),
  predictor='chain',
  help='FedAvg that averages the predictions of five global models, evenly '
  'spread over the second half of the rounds, similar to snapshot ensembles '
  '(Huang et al. 2017).',
)
