"""Random draws of stochastic layers in a forward pass, from one seed.

Keras cannot pass a seed to a layer. `scope(seed)` gives a new seed to each
layer called inside, in the order of calls. A forward pass is therefore a
function of weights, inputs and one seed only. The scope draws the noise of all
variational weights at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import contextlib
import dataclasses
import math
import threading

from bfl_tf import seeds, weights
from bfl_tf.startup import tf

# How stochastic layers draw: a pseudo-independent perturbation and a mask for
# each example, as in training; one perturbation and one mask for all examples,
# so that a sample of the posterior is a function; or none, which gives the
# mean.
DRAWS = ('per_example', 'once', 'none')


class _CurrentScope(threading.local):
  scope: _Scope | None = None


_current = _CurrentScope()


@dataclasses.dataclass
class _Scope:
  stream: seeds.Stream
  draws: str
  # By the id of rho, which is stable during the life of the model.
  noise: dict[int, tf.Tensor]
  num_layers: int = 0


@contextlib.contextmanager
def scope(
  seed, rhos: Sequence[tf.Variable] = (), draws: str = 'per_example'
) -> Iterator[tf.Tensor]:
  """Seeds the stochastic layers called inside.

  Args:
    rhos: Untransformed scales of all Flipout layers. Their noise is drawn once:
      a second call of a layer uses the same noise with other signs. Layers
      without an entry draw new noise in each call.

  Yields:
    `[num_loc]`, the flat scales softplus(`rhos`).
  """
  stream = seeds.Stream(seed)
  scale, noise = tf.nn.softplus(weights.flatten(rhos)), []
  if rhos and draws != 'none':
    drawn = scale * normal(scale.shape.num_elements(), stream('noise'))
    noise = weights.unflatten(drawn, [rho.shape for rho in rhos])
  outer = _current.scope
  _current.scope = _Scope(stream, draws, dict(zip(map(id, rhos), noise)))
  try:
    yield scale
  finally:
    _current.scope = outer


def next_seed() -> tf.Tensor:
  """Returns the `[2]` int32 seed of the layer being called.

  Outside of any scope, the seed is random.
  """
  current = _current.scope
  if current is None:
    return tf.random.uniform([2], maxval=tf.int32.max, dtype=tf.int32)
  current.num_layers += 1
  return current.stream('layer', current.num_layers)


def draws() -> str:
  """Returns how the layer being called draws, one of `DRAWS`."""
  return _current.scope.draws if _current.scope else 'per_example'


def noise_of(rho: tf.Variable) -> tf.Tensor:
  """Returns a draw of N(0, softplus(rho)^2) with the shape of rho."""
  current = _current.scope
  if current and id(rho) in current.noise:
    return current.noise[id(rho)]
  if draws() == 'none':
    return tf.zeros(rho.shape, rho.dtype)
  scale = tf.nn.softplus(rho)
  drawn = normal(scale.shape.num_elements(), next_seed(), scale.dtype)
  return scale * tf.reshape(drawn, scale.shape)


def normal(size: int, seed: tf.Tensor, dtype='float32') -> tf.Tensor:
  """Returns `[size]` draws of N(0, 1) by the Box-Muller transform.

  On a CPU, vector instructions make it twice as fast as `stateless_normal`.
  """
  uniform = seeds.uniform([2, -(-size // 2)], seed, dtype)
  radius = tf.sqrt(-2.0 * tf.math.log1p(-uniform[0]))
  angle = (2.0 * math.pi) * uniform[1]
  pairs = tf.concat([radius * tf.cos(angle), radius * tf.sin(angle)], 0)
  return pairs[:size]
