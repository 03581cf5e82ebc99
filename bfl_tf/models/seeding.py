"""Random draws of stochastic layers in a forward pass, from one seed.

Keras gives a layer no argument for a seed. `scope(seed)` opens a stream of
seeds for the layers called inside it, in the order in which they are called:
so a forward pass is a pure function of weights, inputs and one seed, whatever
the layers' names and however many models the process has built before.
The noise of all variational weights is one draw of the scope.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import contextlib
import dataclasses
import math
import threading

from bfl_tf import seeds, weights
from bfl_tf.startup import tf


class _Current(threading.local):
  scope: _Scope | None = None


_current = _Current()


@dataclasses.dataclass
class _Scope:
  stream: seeds.Stream
  # By the id of rho, which lives as long as its model.
  noise: dict[int, tf.Tensor]
  num_layers: int = 0


@contextlib.contextmanager
def scope(seed, rhos: Sequence[tf.Variable] = ()) -> Iterator[tf.Tensor]:
  """Seeds the stochastic layers called inside.

  Args:
    seed: `[2]` int32 Tensor.
    rhos: the untransformed scales of all Flipout layers. Their noise is drawn
      once: a layer that is called twice has the same noise, under other signs.
      A layer that is not listed draws its own noise in each call.

  Yields:
    `[num_loc]`, softplus of `rhos`, flat.
  """
  stream = seeds.Stream(seed)
  scale, noise = tf.nn.softplus(weights.flatten(rhos)), []
  if rhos:
    drawn = scale * normal(scale.shape.num_elements(), stream('noise'))
    noise = weights.unflatten(drawn, [rho.shape for rho in rhos])
  outer = _current.scope
  _current.scope = _Scope(stream, dict(zip(map(id, rhos), noise)))
  try:
    yield scale
  finally:
    _current.scope = outer


def next_seed() -> tf.Tensor:
  """Returns the `[2]` int32 seed of the layer being called.

  Outside of any scope (a model called by hand) the seed is drawn at random.
  """
  current = _current.scope
  if current is None:
    return tf.random.uniform([2], maxval=tf.int32.max, dtype=tf.int32)
  current.num_layers += 1
  return current.stream('layer', current.num_layers)


def noise_of(rho: tf.Variable) -> tf.Tensor:
  """Returns a draw of N(0, softplus(rho)^2), of the shape of rho."""
  current = _current.scope
  if current and id(rho) in current.noise:
    return current.noise[id(rho)]
  scale = tf.nn.softplus(rho)
  drawn = normal(scale.shape.num_elements(), next_seed(), scale.dtype)
  return scale * tf.reshape(drawn, scale.shape)


def normal(size: int, seed: tf.Tensor, dtype='float32') -> tf.Tensor:
  """Returns `[size]` draws of N(0, 1), by Box and Muller's pairs.

  Vector instructions make it twice as fast as `stateless_normal` on a CPU.
  """
  # Philox is named since the default differs between devices.
  uniform = tf.random.stateless_uniform(
    [2, -(-size // 2)], seed, dtype=dtype, alg='philox'
  )
  radius = tf.sqrt(-2.0 * tf.math.log1p(-uniform[0]))
  angle = (2.0 * math.pi) * uniform[1]
  pairs = tf.concat([radius * tf.cos(angle), radius * tf.sin(angle)], 0)
  return pairs[:size]
