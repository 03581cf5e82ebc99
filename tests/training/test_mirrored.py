"""Tests that a client on two devices equals the client on one device."""

import functools

import numpy as np
import pytest
import toys

from bfl_tf import models, seeds, training

MLP = functools.partial(
  models.build, 'mlp', input_shape=(4,), num_classes=3, hidden_units=(8,)
)


@pytest.fixture(scope='module')
def mirrored():
  (strategy,) = training.strategies(2, 'mirrored')
  assert strategy.num_replicas_in_sync == 2
  return strategy


def pair(mirrored, variant, **settings):
  """Returns the same worker on one device and on two."""
  return [
    toys.worker(
      functools.partial(MLP, variant=variant), strategy=strategy, **settings
    )
    for strategy in (None, mirrored)
  ]


def test_two_devices_give_the_same_weights_as_one(mirrored):
  part = toys.Counter()
  settings = {'weight_decay': 0.01, 'optimizer': training.SGD(0.9)}
  one, two = pair(mirrored, 'deterministic', parts=(part,), **settings)
  memory = {'counter': part.memory(None)}
  # Of 49 examples in batches of 16, the last one is on a single replica.
  task = toys.task(toys.start(one), range(49), epochs=3, memory=memory)
  alone, shared = one.train(task), two.train(task)
  np.testing.assert_allclose(
    shared.model.point, alone.model.point, rtol=1e-5, atol=1e-5
  )
  assert shared.trace.loss == pytest.approx(alone.trace.loss, rel=1e-5)
  assert shared.trace.steps == alone.trace.steps == 12
  assert toys.same(shared.memory, alone.memory)


def test_on_two_devices_the_kl_divergence_is_counted_once(mirrored):
  narrow = training.LayerObjective(prior_scale=0.01, max_scale=1.0)
  one, two = pair(
    mirrored, 'flipout', batch_size=50, inference=training.Inference(narrow)
  )
  begin = toys.start(one)
  task = toys.task(begin, rate=1e-3, epochs=2, batch_size=50)
  alone, shared = one.train(task), two.train(task)
  # The prior is so narrow that the KL dominates the loss.
  assert shared.trace.loss == pytest.approx(alone.trace.loss, rel=1e-2)
  assert all(np.all(np.isfinite(vector)) for vector in shared.model)
  assert not np.any(shared.model.scale == begin.scale)
  assert toys.same(shared, two.train(task))


def test_two_devices_give_the_same_predictions_as_one(mirrored):
  one, two = pair(mirrored, 'flipout')
  model = toys.start(one)
  predict = functools.partial(
    training.predict, model=model, x=toys.TRAIN.x, seed=seeds.named(0, 'test')
  )
  for alone, shared in zip(predict([one]), predict([two])):
    np.testing.assert_allclose(shared, alone, rtol=1e-5)


@pytest.mark.slow
def test_a_replica_without_examples_gives_finite_weights(mirrored):
  worker = toys.worker(
    functools.partial(toys.normalized, (4,), 3), strategy=mirrored
  )
  result = worker.train(toys.task(toys.start(worker), range(33)))
  assert all(np.all(np.isfinite(vector)) for vector in result.model)
