"""Gaussians in natural parameters: a client joins or leaves by its message.

Notation (FL-SWAG, section 5.3): a posterior N(mu, Sigma) that is diagonal plus
low rank has, by Woodbury, the precision

  Sigma^-1 = diag(A) - W^T W      A [P], W [R, P]
  shift = Sigma^-1 mu

Products add these parameters, a client that leaves is subtracted. A and the
shift are sums of float64 with their rounding errors, and the rows of who leaves
are dropped where they are found to the bit: so a client whose scales are small
beside the others' takes nothing of theirs along. Where one is not found, all
come back with the other sign; whitened by A they are compressed to as many as
there is rank left.

References:
  M. Makni. Deriving FL-SWAG as a one-shot method. 2022, section 5.3.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg

from bfl_tf import statistics
from bfl_tf import weights as weights_lib
from bfl_tf.pooling import product

# Relative to what cancels: what rounding leaves of a direction that is gone.
_ROUNDING = 1e-13


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

  Raises:
    ValueError: no precision is left that is positive definite: the client was
      no member with this message.
  """
  (precision, shift), errors = _sums(server, client, -1)
  if not np.all(precision > 0):
    raise _not_a_member('diagonal')
  rows = _without(server.rows, client.rows)
  if rows is None:
    rows = np.concatenate([server.rows, client.rows])
    signs = np.repeat([1.0, -1.0], [len(server.rows), len(client.rows)])
    rows = _compressed(rows / np.sqrt(precision), signs) * np.sqrt(precision)
  left = Natural(precision, shift, rows, errors)
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
  """The rows that are left if all that go are there to the bit, or None.

  No difference is taken then: of a client whose scales are small beside the
  others', one would lose what the others have.
  """
  left = list(range(len(rows)))
  for row in gone:
    same = [place for place in left if np.array_equal(rows[place], row)]
    if not same:
      return None
    left.remove(same[0])
  return rows[left]


def _compressed(rows, signs):
  """Rows whose W^T W is that of signed rows; at most as many as the rank."""
  if not len(rows):
    return rows
  # An orthonormal basis of the rows, and the signed form in it.
  values, vectors = np.linalg.eigh(rows @ rows.T)
  nothing = _ROUNDING * len(rows) * max(1.0, values[-1])
  kept = values > nothing
  roots = np.sqrt(values[kept])
  turned = vectors[:, kept]
  basis = (turned / roots).T @ rows
  form = (turned * roots).T @ (signs[:, np.newaxis] * (turned * roots))
  values, vectors = np.linalg.eigh(form)
  # Clients' precisions are at most their diagonals, and positive definite.
  if values.size and (values[0] < -nothing or values[-1] >= 1):
    raise _not_a_member('precision')
  kept = values > nothing
  return (vectors[:, kept] * np.sqrt(values[kept])).T @ basis


def _not_a_member(what):
  return ValueError(
    f'leaves no positive definite {what}: the client was no member with this '
    'message.'
  )
