"""Tests of networks: number of weights, initial weights, errors."""

import numpy as np
import pytest
import tf_keras

from bfl_tf import models, weights


def build(name, shape=(8, 8, 1), variant='deterministic', **settings):
  settings = {'num_classes': 10, **settings}
  return models.build(name, variant=variant, input_shape=shape, **settings)


def read(model):
  return weights.Weights(
    *map(np.asarray, weights.read(weights.Variables.of(model)))
  )


def resnet_counts(depth, normalization):
  """Returns numbers of kernel and bias, gamma and beta, moving weights."""
  n = (depth - 2) // 6
  convs = [(3, 16), *[(16, 16)] * (2 * n)]
  for width in (32, 64):
    convs += [(width // 2, width), *[(width, width)] * (2 * n - 1)]
  outputs = sum(width for _, width in convs)
  kernels = sum(9 * a * b for a, b in convs) + 64 * 10 + 10
  if normalization == 'none':
    return kernels + outputs, 0, 0
  return kernels, 2 * outputs, 2 * outputs * (normalization == 'batch')


@pytest.mark.parametrize(
  'name, shape, settings, count',
  [
    ('logistic', (5,), {'num_classes': 3}, 18),
    ('mlp', (5,), {}, 6 * 64 + 65 * 10),
    ('mlp', (8, 8, 1), {'hidden_units': (7, 6)}, 65 * 7 + 8 * 6 + 7 * 10),
    ('lenet5', (28, 28, 1), {}, 61_706),
    (
      'convnet',
      (18, 18, 1),
      {'extra_layers': 3},
      10 * 32 + 289 * 64 + 4 * 577 * 64 + 65 * 64 + 650,
    ),
  ],
)
def test_numbers_of_weights(name, shape, settings, count):
  variants = ('flipout', *(models.VARIANTS if name == 'mlp' else ()))
  for variant in variants:
    model = build(name, shape, variant, **settings)
    layout = weights.Layout.of(model)
    assert model.output_shape == (None, settings.get('num_classes', 10))
    assert layout.num_trainable() == count
    assert layout.size('loc') == (count if variant == 'flipout' else 0)
    assert layout.size('buffers') == 0


@pytest.mark.parametrize(
  'depth, variant, normalization',
  [
    (14, 'deterministic', 'batch'),
    (8, 'mc_dropout', 'group'),
    (8, 'flipout', 'batch'),
    (8, 'flipout', 'none'),
  ],
)
def test_numbers_of_weights_of_resnets(depth, variant, normalization):
  model = build(
    f'resnet{depth}', (8, 8, 3), variant, normalization=normalization
  )
  layout = weights.Layout.of(model)
  kernels, affine, moving = resnet_counts(depth, normalization)
  assert layout.num_trainable() == kernels + affine
  # Gamma and beta are deterministic; biases exist only without normalization.
  assert layout.size('loc') == (kernels if variant == 'flipout' else 0)
  assert layout.size('buffers') == moving


def test_numbers_of_weights_of_resnet18():
  model = build('resnet18', (32, 32, 3))
  layout = weights.Layout.of(model)
  # ImageNet's network (torchvision) has 1000 classes and a 7x7 stem.
  expected = 11_689_512 - 990 * 513 - (49 - 9) * 3 * 64
  assert layout.num_trainable() == expected
  # Each output of 20 convolutions has a mean and a variance.
  assert layout.size('buffers') == 2 * 4_800


def test_the_number_of_resnet20_weights_is_that_of_the_paper():
  # He et al., table 6: 0.27 million.
  assert sum(resnet_counts(20, 'batch')[:2]) == 269_722


def test_initial_weights_depend_only_on_the_seed():
  first, again, other = (
    read(build('mlp', (12,), 'flipout', seed=seed)) for seed in (3, 3, 4)
  )
  assert all(map(np.array_equal, first, again))
  kernels = first.loc != 0
  assert np.mean(kernels) > 0.9
  assert not np.any((first.loc == other.loc) & kernels)


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


def linear(variant, input_shape, num_classes):
  """A custom builder, whose initializer takes no seed."""
  inputs = tf_keras.Input(input_shape)
  x = tf_keras.layers.Dense(num_classes)(tf_keras.layers.Flatten()(inputs))
  return tf_keras.Model(inputs, x)


def test_a_custom_builder_depends_on_the_seed():
  name = f'{__name__}:linear'
  first, again, other = (build(name, seed=seed) for seed in (1, 1, 2))
  assert first.output_shape == (None, 10)
  assert np.array_equal(read(first).point, read(again).point)
  assert not np.array_equal(read(first).point, read(other).point)


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
