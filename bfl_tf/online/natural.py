"""Gaussians in natural parameters: a client joins or leaves by its message.

Notation (FL-SWAG, section 5.3): a posterior N(mu, Sigma) that is diagonal plus
low rank has, by Woodbury, the precision

  Sigma^-1 = diag(A) - W^T W      A [P], W [R, P]
  shift = Sigma^-1 mu

Products add these parameters, a client that leaves is subtracted. A and the
shift are sums of float64 with their rounding errors, and the rows of who leaves
are found among the server's and dropped: so a client whose scales are small
beside the others' takes nothing of theirs along.

References:
  M. Makni. Deriving FL-SWAG as a one-shot method. 2022, section 5.3.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg

from bfl_tf import statistics
from bfl_tf import weights as weights_lib
from bfl_tf.pooling import product


class Natural(NamedTuple):
  """A Gaussian by its precision `diag(precision) - rows^T rows`, and shift.

  Attributes:
    precision: `[size]`.
    shift: `[size]`, the precision times the mean.
    rows: `[rank, size]`.
    errors: `[2, size]`, what rounding left out of precision and shift.
  """

  precision: np.ndarray
  shift: np.ndarray
  rows: np.ndarray
  errors: np.ndarray


def of_model(model: weights_lib.Weights) -> Natural:
  """Returns the parameters of a model's posterior over its random weights."""
  precision = 1.0 / np.square(model.scale, dtype=np.float64)
  factor = model.factor.astype(np.float64)
  scaled = factor * precision
  cholesky = np.linalg.cholesky(np.eye(len(factor)) + scaled @ factor.T)
  rows = linalg.solve_triangular(cholesky, scaled, lower=True)
  loc = model.loc.astype(np.float64)
  shift = precision * loc - (rows @ loc) @ rows
  return Natural(precision, shift, rows, np.zeros([2, loc.size]))


def add(server: Natural, client: Natural) -> Natural:
  """Returns the product of two."""
  (precision, shift), errors = _sums(server, client, 1)
  rows = np.concatenate([server.rows, client.rows])
  return Natural(precision, shift, rows, errors)


def subtract(server: Natural, client: Natural) -> Natural:
  """Returns what is left of a product without one of its members.

  Args:
    server: the product.
    client: what `add` was given, to the bit.

  Raises:
    ValueError: no precision is left that is positive definite: the client was
      no member with this message.
  """
  (precision, shift), errors = _sums(server, client, -1)
  if not np.all(precision > 0):
    raise _not_a_member('diagonal')
  left = Natural(precision, shift, _without(server.rows, client.rows), errors)
  _latent_cholesky(left)
  return left


def moments(natural: Natural) -> product.Moments:
  """Returns mean, variance and factor.

  Raises:
    ValueError: the precision is not positive definite.
  """
  rows = natural.rows / natural.precision
  factor = linalg.solve_triangular(_latent_cholesky(natural), rows, lower=True)
  mean = natural.shift / natural.precision + (factor @ natural.shift) @ factor
  return product.Moments(mean, 1.0 / natural.precision, factor)


def _latent_cholesky(natural):
  """Of I - W A^-1 W^T, positive definite where the precision is."""
  rows = natural.rows
  try:
    return np.linalg.cholesky(
      np.eye(len(rows)) - (rows / natural.precision) @ rows.T
    )
  except np.linalg.LinAlgError:
    raise _not_a_member('precision') from None


def _sums(server, client, sign):
  """Precision and shift, `[2, size]`, and their errors."""
  ours, theirs = (np.stack([n.precision, n.shift]) for n in (server, client))
  total, error = statistics.two_sum(ours, sign * theirs)
  return statistics.two_sum(total, error + server.errors + sign * client.errors)


def _without(rows, gone):
  """The rows that are left if all that go are there, to the bit.

  Rows are dropped, not subtracted: with a client whose scales are small beside
  the others' one would lose what the others have.
  """
  left = list(range(len(rows)))
  for row in gone:
    same = (at for at in left if np.array_equal(rows[at], row))
    place = next(same, None)
    if place is None:
      raise _not_a_member('precision')
    left.remove(place)
  return rows[left]


def _not_a_member(what):
  return ValueError(
    f'leaves no positive definite {what}: the client was no member with this '
    'message.'
  )
