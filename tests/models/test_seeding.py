"""Tests of seeds of models, and of dropout in evaluation."""

import numpy as np
import tensorflow as tf

from bfl_tf import models
from bfl_tf.models import layers

ROWS = np.random.default_rng(0).normal(size=[2, 5]).astype(np.float32)


def test_mc_dropout_is_on_at_inference():
  layer = layers.MCDropout(0.25)
  x = tf.fill([40, 250], 3.0)
  with models.scope([1, 2]):
    y, z = layer(x, training=False).numpy(), layer(x, training=False).numpy()
  assert set(np.unique(y)) == {0.0, 4.0}
  error = (y == 0).mean() - 0.25
  assert abs(error) <= 5 * (0.25 * 0.75 / y.size) ** 0.5
  # Two calls in a pass have different masks; the same seed has the same mask.
  assert not np.array_equal(y, z)
  with models.scope([1, 2]):
    assert np.array_equal(y, layer(x, training=True))
  assert layers.MCDropout.from_config(layer.get_config()).rate == 0.25


def test_ordinary_dropout_is_off_at_inference():
  layer, ones = layers.Dropout(0.25), tf.ones([4, 500])
  np.testing.assert_array_equal(layer(ones, training=False), ones)
  with tf.GradientTape() as tape, models.scope([0, 1]):
    tape.watch(ones)
    dropped = layer(ones, training=True)
  assert set(np.unique(dropped)) == {0, np.float32(1 / 0.75)}
  np.testing.assert_array_equal(tape.gradient(dropped, ones), dropped)


def test_a_nested_scope_does_not_change_the_outer_seeds():
  def stream(inside):
    with models.scope([7, 0]):
      yield models.next_seed().numpy().tolist()
      if inside:
        with models.scope([9, 0]):
          models.next_seed()
      yield models.next_seed().numpy().tolist()

  first, second = stream(inside=False)
  assert [first, second] == list(stream(inside=True))
  assert first != second
