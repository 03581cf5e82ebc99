"""SCAFFOLD: control variates against the drift of clients.

Notation: x the broadcast mean, y_i the client's trained one, c and c_i the
server's and the client's control variates, R the sum of a round's rates.
  g <- g - c_i + c                          at each step
  c_i+ = c_i - c + (x - y_i) / R            option II
  the client sends c_i+ - c_i and keeps c_i+

(x - y_i) / R is the mean gradient of plain SGD only: no momentum, no Adam.

References:
  S. P. Karimireddy et al. SCAFFOLD: Stochastic controlled averaging for
  federated learning. ICML 2020, algorithm 1.
"""

import dataclasses
from typing import ClassVar

import numpy as np


@dataclasses.dataclass(frozen=True)
class Scaffold:
  """The client's side; the server's is the stage of the same name."""

  name: ClassVar[str] = 'scaffold'
  needs: ClassVar[str | None] = 'scaffold'
  plain_sgd: ClassVar[bool] = True

  def init_memory(self, model):
    """c_i starts at zero, `[num_trainable]`."""
    return np.zeros(model.mean.size, np.float32)

  def begin(self, start, shared, memory):
    """Carries x, c and c_i."""
    return start.mean, shared, memory

  def gradient(self, gradient, mean, carry, step):
    """Corrects the drift."""
    _, server_control, control = carry
    return gradient - control + server_control

  def finish(self, model, carry, trace):
    """Sends the change of c_i and keeps the new one."""
    start, server_control, control = carry
    drift = (start - model.mean) / trace.sum_rates
    new = control - server_control + drift
    return model, new - control, new
