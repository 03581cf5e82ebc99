"""pfl-research's simulation of a round: a peer of --case=peers."""

from collections.abc import Callable
from typing import Any

import pfl
from pfl.aggregate import simulate, weighting
from pfl.algorithm import base, federated_averaging
from pfl.data import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNTrainHyperParams
from pfl.internal.ops import pytorch_ops, selector
from pfl.model.pytorch import PyTorchModel
import torch
from torch.nn import functional

from bfl_tf.config.config import Config
from experiments.benchmarks import torch_peer


def begin(config: Config) -> tuple[str, Callable[[], Any]]:
  """Returns a label and a function that runs one round."""
  selector.set_framework_module(pytorch_ops)
  # It sets this in the main process only.
  pytorch_ops.distributed = pytorch_ops.PyTorchDistributedContext()
  x, y = torch_peer.examples(config)
  size = len(x) // config.num_clients
  # It scales its images before the training.
  users = list(zip((x.float() / 255).split(size), y.split(size)))
  network = torch_peer.NETWORKS[config.model](x.shape[1:])

  def loss(inputs, labels, eval=False):
    network.train(not eval)
    return functional.cross_entropy(network(inputs), labels)

  network.loss, network.metrics = loss, lambda *unused, **more: {}
  is_sgd = config.client_optimizer == 'sgd'
  model = PyTorchModel(
    model=network,
    local_optimizer_create=torch.optim.SGD if is_sgd else torch.optim.Adam,
    central_optimizer=torch.optim.SGD(network.parameters(), 1.0),
  )
  data = FederatedDataset.from_slices(
    users, get_user_sampler('random', range(len(users)))
  )
  backend = simulate.SimulatedBackend(
    training_data=data, val_data=data, postprocessors=[weighting.WeightByUser()]
  )
  training = NNTrainHyperParams(
    local_learning_rate=config.client_learning_rate,
    local_num_epochs=config.local_epochs,
    local_batch_size=config.batch_size,
  )
  one_round = base.NNAlgorithmParams(
    central_num_iterations=1,
    evaluation_frequency=1_000_000,
    train_cohort_size=len(users),
    val_cohort_size=0,
  )

  def execute():
    federated_averaging.FederatedAveraging().run(
      one_round, backend, model, training, None
    )

  threads = torch.get_num_threads()
  return f'pfl-research {pfl.__version__} (threads: {threads})', execute
