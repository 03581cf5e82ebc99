"""How a simulation is laid out."""

import pytest

from bfl_tf import federation
from bfl_tf.flower import simulation


@pytest.mark.parametrize(
  'num_clients, processes, timeout, nodes',
  [
    (10, 2, 0.0, 10),
    (200, 2, 0.0, 16),
    (200, 32, 0.0, 64),
    (200, 2, 5.0, 4),
    (3, 2, 5.0, 3),
  ],
)
def test_orders_out_at_a_time(num_clients, processes, timeout, nodes):
  config = federation.Config(
    num_clients=num_clients, engine='flower', client_timeout=timeout
  )
  assert simulation.num_nodes(config, processes) == nodes
