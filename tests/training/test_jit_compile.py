"""Tests of the local training that XLA compiles."""

import functools
import math

import numpy as np
import pytest
import toys

from bfl_tf import models, training
from bfl_tf.methods import fedprox
from experiments.papers.noniid_techniques import projection

SIZES = (7, 50, 33, 64)  # With a batch of 16: no, some and only full batches.


def images():
  x = np.random.default_rng(0).integers(0, 256, [64, 8, 8, 1], np.uint8)
  one = np.ones(1, np.float32)
  return training.Data(x, np.arange(64, dtype=np.int32) % 3, 0 * one, 255 * one)


def network(name, **arguments):
  return functools.partial(
    models.build, name, num_classes=3, input_shape=(8, 8, 1), **arguments
  )


@pytest.mark.parametrize(
  'settings',
  [
    {
      'parts': (fedprox.Proximal(), projection.Projection()),
      'optimizer': training.Adam(),
    },
    pytest.param(
      {
        'build': network('mlp', hidden_units=(8,), variant='mc_dropout'),
        'data': images(),
        'augment': True,
      },
      marks=pytest.mark.slow,
    ),
    pytest.param({'variant': 'flipout'}, marks=pytest.mark.slow),
  ],
)
def test_compiled_and_other_steps_agree_and_are_compiled_once(settings):
  plain, compiled = (
    toys.worker(jit_compile=jit, **settings) for jit in (False, True)
  )
  begin = toys.start(plain)
  for size in SIZES:
    rate = 0.05 * 0.9 ** np.arange(2 * math.ceil(size / 16))
    task = toys.task(begin, indices=range(size), epochs=2, rate=rate)
    expected, found = plain.train(task), compiled.train(task)
    assert found.trace.steps == expected.trace.steps
    np.testing.assert_allclose(found.trace.loss, expected.trace.loss, rtol=1e-5)
    np.testing.assert_allclose(
      found.model.values, expected.model.values, atol=1e-5
    )
  # Shapes are static: clients of other sizes need no other program.
  steps = compiled.training._compiled
  assert steps.experimental_get_tracing_count() == 1
