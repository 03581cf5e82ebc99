"""Stateless seeds for stochastic layers.

Keras gives a layer no argument for a seed. `scope(seed)` opens a stream of
seeds for the layers called inside it, in the order in which they are called:
so a forward pass is a pure function of weights, inputs and one seed, whatever
the layers' names and however many models the process has built before.
"""

import contextlib
import threading

import tensorflow as tf

from bfl_tf import seeds

_stack = threading.local()


@contextlib.contextmanager
def scope(seed):
  """Seeds the stochastic layers called inside.

  Args:
    seed: `[2]` int32 Tensor.

  Yields:
    Nothing.
  """
  outer = getattr(_stack, 'stream', None)
  _stack.stream = [seeds.Stream(seed), 0]
  try:
    yield
  finally:
    _stack.stream = outer


def next_seed() -> tf.Tensor:
  """Returns the `[2]` int32 seed of the layer being called.

  Outside of any scope (a model called by hand) the seed is drawn at random.
  """
  stream = getattr(_stack, 'stream', None)
  if stream is None:
    return tf.random.uniform([2], maxval=tf.int32.max, dtype=tf.int32)
  stream[1] += 1
  return stream[0]('layer', stream[1])
