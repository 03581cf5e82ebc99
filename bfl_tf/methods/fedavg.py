"""FedAvg (McMahan et al. 2017): the average of deterministic models.

References:
  H. B. McMahan et al. Communication-efficient learning of deep networks from
  decentralized data. AISTATS 2017.
"""

from bfl_tf.methods.method import Method

fedavg = Method(help=__doc__)
