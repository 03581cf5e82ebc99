"""The client optimizers by name."""

from typing import Any

from bfl_tf.training import first_order, ivon, langevin, laplace

OPTIMIZERS: dict[str, Any] = {
  'sgd': first_order.SGD,
  'adam': first_order.Adam,
  'sgld': langevin.SGLD,
  'psgld': langevin.PSGLD,
  'ivon': ivon.IVON,
  'laplace': laplace.Laplace,
}
