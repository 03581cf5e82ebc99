"""Tests of models that Keras has saved and loaded."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from bfl_tf import models


def assert_alike(ours, theirs):
  x = np.random.default_rng(1).normal(size=[3, *ours.input_shape[1:]])
  for seed in ([1, 2], [3, 4]):
    logits = []
    for model in (ours, theirs):
      with models.scope(tf.constant(seed)):
        logits.append(model(tf.constant(x, tf.float32)).numpy())
    np.testing.assert_array_equal(*logits)


@pytest.mark.parametrize(
  'name, variant, settings',
  [
    ('resnet8', 'mc_dropout', {'rate': 0.4}),
    ('fixup_resnet8', 'flipout', {'initial_scale': 0.1}),
    pytest.param(
      'mobilenetv2', 'flipout', {'initial_scale': 0.1}, marks=pytest.mark.slow
    ),
  ],
)
def test_config_and_saved_file_restore_the_model(
  name, variant, settings, tmp_path
):
  model = models.build(
    name, variant=variant, input_shape=(8, 8, 3), num_classes=3, seed=3,
    **settings,
  )  # fmt: skip
  copy = tf_keras.Model.from_config(model.get_config())
  for ours, theirs in zip(model.get_weights(), copy.get_weights(), strict=True):
    np.testing.assert_array_equal(ours, theirs)
  assert_alike(model, copy)
  # Every weight and moving statistic has another value.
  rng = np.random.default_rng(0)
  model.set_weights(
    [w + rng.uniform(0.01, 0.05, w.shape) for w in model.get_weights()]
  )
  model.save(tmp_path / 'model.keras')
  assert_alike(model, tf_keras.models.load_model(tmp_path / 'model.keras'))
