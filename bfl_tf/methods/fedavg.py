"""FedAvg, its personal models, and training of each client alone."""

from bfl_tf.methods.method import Method

fedavg = Method(
  {'variant': 'deterministic', 'pooling': 'nwa'},
  help='FedAvg (McMahan et al. 2017): the weighted average of deterministic '
  'models.',
)

fedavg_local = Method(
  {**fedavg.flags, 'client_parts': 'keep_local'},
  help="FedAvg whose personal models are those of each client's last local "
  'training.',
)

local = Method(
  {**fedavg.flags, 'client_parts': 'ditto', 'ditto.weight': 0},
  help='Local training: Ditto without the penalty. Each personal model begins '
  'at the initial model, and the server never changes it.',
)
