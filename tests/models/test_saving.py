"""Tests of models that Keras has saved and loaded."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from bfl_tf import models

SHAPES = dict.fromkeys(('resnet8', 'fixup_resnet8', 'mobilenetv2'), (8, 8, 3))
every_model = pytest.mark.parametrize(
  'name, variant',
  [
    ('resnet8', 'mc_dropout'),
    ('fixup_resnet8', 'flipout'),
    pytest.param('mobilenetv2', 'flipout', marks=pytest.mark.slow),
  ],
)


SETTINGS = {'flipout': {'initial_scale': 0.1}, 'mc_dropout': {'rate': 0.4}}


def build(name, variant):
  return models.build(
    name,
    variant=variant,
    input_shape=SHAPES.get(name, (12, 12, 1)),
    num_classes=3,
    seed=3,
    **SETTINGS[variant],
  )


def assert_alike(ours, theirs):
  x = np.random.default_rng(1).normal(size=[3, *ours.input_shape[1:]])
  for seed in ([1, 2], [3, 4]):
    logits = []
    for model in (ours, theirs):
      with models.scope(tf.constant(seed)):
        logits.append(model(tf.constant(x, tf.float32)).numpy())
    np.testing.assert_array_equal(*logits)


@every_model
def test_config_and_saved_file_restore_the_model(name, variant, tmp_path):
  model = build(name, variant)
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
