"""The clients of the released code of FedBEns, for `--partition`.

FedBEns: one-shot federated learning based on Bayesian ensemble. ICML 2025.
https://github.com/jacopot96/FedBEns, commit b2c9813. docs/results/one_round.md
"""

import numpy as np


def released(
  labels: np.ndarray, num_clients: int, num_classes: int
) -> list[np.ndarray]:
  """Splits examples as `data.py` does, with its seed 3 in every run.

  The shares of the classes of each client ~ Dirichlet(0.1); each class is
  divided in proportion to its shares. All training images give the same clients
  as the code. A part of them gives the same shares.
  """
  rng = np.random.RandomState(3)
  mixes = [
    rng.dirichlet(np.repeat(0.1, num_classes)) for _ in range(num_clients)
  ]
  clients: list[list[int]] = [[] for _ in range(num_clients)]
  for k, shares in enumerate(np.transpose(mixes)):
    of_class = np.flatnonzero(labels == k)
    rng.shuffle(of_class)
    ends = (np.cumsum(shares / shares.sum()) * of_class.size).astype(int)[:-1]
    for own, part in zip(clients, np.split(of_class, ends), strict=True):
      own.extend(part.tolist())
  for own in clients:
    rng.shuffle(own)
  return [np.array(own) for own in clients]
