"""Tests of networks: number of weights, initial weights, errors."""

import numpy as np
import pytest
import tf_keras

from bfl_tf import models, weights


def build(name, shape=(8, 8, 1), variant='deterministic', **settings):
  settings = {'num_classes': 10, **settings}
  return models.build(name, variant=variant, input_shape=shape, **settings)


# Weights of the kernels and of the classifier of a ResNet-8, and number of
# outputs of its convolutions. Each output has gamma, beta, a moving mean and a
# moving variance, or else a bias.
RESNET8, OUTPUTS = 9 * 8_240 + 650, 3 * 16 + 2 * 32 + 2 * 64


@pytest.mark.parametrize(
  'name, shape, variant, settings, trainable, variational, buffers',
  [
    ('logistic', (5,), 'flipout', {'num_classes': 3}, 18, 18, 0),
    ('mlp', (5,), 'deterministic', {}, 6 * 64 + 650, 0, 0),
    ('mlp', (5,), 'mc_dropout', {}, 6 * 64 + 650, 0, 0),
    ('mlp', (8, 8, 1), 'flipout', {'hidden_units': (7, 6)}, 573, 573, 0),
    ('lenet5', (28, 28, 1), 'flipout', {}, 61_706, 61_706, 0),
    # 10 * 32 + 289 * 64 + 4 * 577 * 64 + 65 * 64 + 650.
    ('convnet', (18, 18, 1), 'flipout', {'extra_layers': 3}, 171_338, 171_338,
     0),
    # He et al., table 6: 0.27 million.
    ('resnet20', (8, 8, 3), 'deterministic', {'normalization': 'batch'},
     269_722, 0, 2 * 688),
    ('resnet8', (8, 8, 3), 'mc_dropout', {'normalization': 'group'},
     RESNET8 + 2 * OUTPUTS, 0, 0),
    ('resnet8', (8, 8, 3), 'flipout', {'normalization': 'batch'},
     RESNET8 + 2 * OUTPUTS, RESNET8, 2 * OUTPUTS),
    ('resnet8', (8, 8, 3), 'flipout', {'normalization': 'none'},
     RESNET8 + OUTPUTS, RESNET8 + OUTPUTS, 0),
    # Each of three blocks has five scalars, and the network has two more.
    ('fixup_resnet8', (8, 8, 3), 'flipout', {}, RESNET8 + 17, RESNET8, 0),
    # ImageNet's network (torchvision) has 1000 classes and a 7x7 stem.
    ('resnet18', (32, 32, 3), 'deterministic', {},
     11_689_512 - 990 * 513 - (49 - 9) * 3 * 64, 0, 2 * 4_800),
  ],
)  # fmt: skip
def test_numbers_of_weights(
  name, shape, variant, settings, trainable, variational, buffers
):
  model = build(name, shape, variant, **settings)
  layout = weights.Layout.of(model)
  assert model.output_shape == (None, settings.get('num_classes', 10))
  assert layout.num_trainable() == trainable
  assert layout.size('loc') == variational
  assert layout.size('buffers') == buffers


def test_extra_layers_do_not_change_other_initial_kernels():
  settings = {'name': 'convnet', 'shape': (20, 20, 1), 'seed': 3}
  without, more = (
    [v for v in model.trainable_variables if v.shape.rank > 1]
    for model in (build(**settings), build(**settings, extra_layers=2))
  )
  assert (len(without), len(more)) == (5, 7)
  for place, kernel in enumerate(without):
    he_normal = tf_keras.initializers.HeNormal(seed=3 * 1009 + place)
    assert np.array_equal(kernel, he_normal(kernel.shape))
  assert all(map(np.array_equal, without[:3], more[:3]))
  assert [kernel.shape for kernel in more[3:5]] == [(3, 3, 64, 64)] * 2


def test_only_mc_dropout_models_have_dropout_layers():
  counts = [
    [type(layer).__name__ for layer in build(name, variant=variant).layers]
    .count('MCDropout')
    for name, variant in (
      ('resnet8', 'mc_dropout'), *(('mlp', v) for v in models.VARIANTS)
    )
  ]  # fmt: skip
  # Dropout follows every convolution and hidden layer, but not the logits.
  assert counts == [7, 0, 1, 0]


# The initializers of a custom network have no seeds.
@pytest.mark.parametrize('name', ['mlp', 'toys:normalized'])
def test_initial_weights_depend_only_on_the_seed(name):
  first, again, other = (
    build(name, (12,), seed=seed).get_weights() for seed in (1, 1, 2)
  )
  assert all(map(np.array_equal, first, again))
  assert not np.array_equal(first[0], other[0])


# Network, inputs and settings, by a pattern of the error.
INVALID = {
  'resnet21': ('resnet21', (32, 32, 3), {}),
  'lenet5 .* 12x12': ('lenet5', (11, 28, 1), {}),
  r'convnet .* \(30,\)': ('convnet', (30,), {}),
  '--normalization=l': ('resnet8', (8, 8, 1), {'normalization': 'l'}),
  'normalization': ('mlp', (5,), {'normalization': 'none'}),
}  # fmt: skip


def test_invalid_networks_and_settings_are_rejected():
  for named, (name, shape, settings) in INVALID.items():
    with pytest.raises(ValueError, match=named):
      build(name, shape, **settings)
