"""PyTorch as an expert writes it for a GPU: a peer of --case=gpu.

The images are on the card, in the channels-last layout. The network computes in
bfloat16 and is compiled into CUDA graphs, and the optimizer is fused. On a CPU,
nothing is compiled.
"""

from collections.abc import Callable
from typing import Any

import torch

from bfl_tf.config.config import Config
from experiments.benchmarks import torch_peer


def begin(config: Config) -> tuple[str, Callable[[], Any]]:
  """Returns a label and a function that runs one round."""
  device = 'cuda' if torch.cuda.is_available() else 'cpu'
  torch.set_default_device(device)
  torch.backends.cuda.matmul.allow_tf32 = True
  torch.backends.cudnn.benchmark = True
  x, y = (tensor.to(device) for tensor in torch_peer.examples(config))
  x = x.contiguous(memory_format=torch.channels_last)
  model = torch_peer.NETWORKS[config.model](x.shape[1:]).to(device)
  model = model.to(memory_format=torch.channels_last)
  compiled: Any = model
  if device == 'cuda':
    compiled = torch.compile(model, mode='reduce-overhead')
  start = [tensor.clone() for tensor in model.state_dict().values()]
  size = len(x) // config.num_clients

  def execute():
    sums = [torch.zeros_like(tensor, dtype=torch.float32) for tensor in start]
    for own in torch.arange(len(x)).split(size):
      with torch.no_grad():
        for tensor, first in zip(model.state_dict().values(), start):
          tensor.copy_(first)
      with torch.autocast(device, torch.bfloat16):
        torch_peer.train(compiled, x, y, own, config, fused=True)
      for total, tensor in zip(sums, model.state_dict().values()):
        total += tensor
    return [(total / config.num_clients).cpu() for total in sums]

  return f'PyTorch {torch.__version__} ({device}), expert', execute


def peak_memory() -> float:
  """Returns the peak memory of tensors on the card, in MiB; 0 on a CPU."""
  return torch.cuda.max_memory_allocated() / 2**20
