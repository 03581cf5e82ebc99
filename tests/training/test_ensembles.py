"""Tests of mixtures of predictions, soft targets, cycles, recalibration."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
import toys

from bfl_tf import training, weights

RNG = np.random.default_rng(0)
CLASSES = training.Categorical()


def of_samples(probs):
  """Returns moments of `[num_samples, num_examples, num_classes]`."""
  return training.Predictive(
    probs.mean(0),
    (probs * (1 - probs)).sum(-1).mean(0),
    probs.var(0).sum(-1),
    -(probs * np.log(probs)).sum(-1).mean(0),
  )


def mixed(parts):
  mixtures = training.Mixtures(CLASSES)
  for name, samples in parts:
    for sample in samples:
      mixtures.add(name, of_samples(sample[None]))
  return mixtures


def test_a_union_is_the_mixture_of_all_its_members():
  probs = RNG.dirichlet(np.ones(3), [6, 4])
  found = mixed([('two', probs[:2]), ('one', probs[2:3]), ('three', probs[3:])])
  for names, members in (
    (('two',), probs[:2]),
    (('three', 'two'), probs[[0, 1, 3, 4, 5]]),
    (('one', 'two', 'three'), probs),
  ):
    for value, expected in zip(found.union(names), of_samples(members)):
      np.testing.assert_allclose(value, expected, rtol=1e-6)
  # Members that are mixtures themselves keep their own spread.
  mixtures = training.Mixtures(CLASSES)
  for part in (probs[:3], probs[3:]):
    mixtures.add('both', of_samples(part))
  for value, expected in zip(mixtures.union(['both']), of_samples(probs)):
    np.testing.assert_allclose(value, expected, rtol=1e-6)
  probs = 0.5 + 1e-5 * RNG.standard_normal([8, 5, 2])
  found = mixed([('all', probs)]).union(['all'])
  np.testing.assert_allclose(found.epistemic, probs.var(0).sum(-1), rtol=1e-4)


def test_predictions_of_members_are_returned_one_by_one():
  worker = toys.worker()
  begin = toys.start(worker)
  others = [begin.replace_mean(begin.mean * factor) for factor in (1, 3, -2)]
  found = list(
    training.predict_members(
      [worker],
      {'one': others[:1], 'two': others[1:]},
      toys.TRAIN.x[:9],
      seed=np.array([0, 0], np.int32),
    )
  )
  assert [name for name, _ in found] == ['one', 'two', 'two']
  kernel, bias = (
    np.stack([m.point for m in others])[:, part]
    for part in (slice(0, 12), slice(12, 15))
  )
  logits = toys.TRAIN.x[:9] @ kernel.reshape(3, 4, 3) + bias[:, None]
  for (_, member), probs in zip(found, tf.nn.softmax(logits).numpy()):
    np.testing.assert_allclose(member.mean, probs, atol=1e-6)


def test_members_have_independent_random_draws():
  worker = toys.worker(variant='flipout')
  group = {'alike': [toys.start(worker)] * 2}
  (_, one), (_, other) = training.predict_members(
    [worker], group, toys.TRAIN.x, seed=np.zeros(2, np.int32)
  )
  assert not np.any(one.mean == other.mean)


def test_one_hot_targets_train_like_labels():
  nothing = toys.DATA._replace(y=np.zeros([150, 3], np.float32))
  hard, soft = toys.worker(), toys.worker(data=nothing)
  task = toys.task(toys.start(hard), epochs=2)
  targets = np.eye(3, dtype=np.float32)[toys.TRAIN.y]
  one, other = hard.train(task), soft.train(task, y=targets)
  np.testing.assert_allclose(one.model.point, other.model.point, atol=1e-6)
  assert one.trace.loss == pytest.approx(other.trace.loss, rel=1e-5)


def test_a_fixed_scale_is_constant_and_adds_no_divergence():
  free = toys.worker(variant='flipout')
  held = toys.worker(variant='flipout', trains_scale=False)
  begin = toys.start(free)
  task = toys.task(begin)
  found = held.train(task)
  np.testing.assert_allclose(found.model.scale, begin.scale, rtol=1e-6)
  assert not np.allclose(free.train(task).model.scale, begin.scale, rtol=1e-3)
  # 15 weights of KL[N(0, 0.05^2) || N(0, 10^2)] = 4.8 nats, over 50 examples.
  difference = free.train(task).trace.loss - found.trace.loss
  assert difference == pytest.approx(15 * 4.8 / 50, abs=0.1)


def test_recalibration_measures_the_batch_statistics_of_the_data():
  workers = [toys.worker(toys.normalized_inputs)]
  begin = toys.start(workers[0])
  x = (5.0 + 3.0 * RNG.standard_normal([1000, 4])).astype(np.float32)
  found = training.recalibrate(
    workers, begin, x, seed=np.array([0, 0], np.int32)
  )
  batches = [x[i::3] for i in range(3)]
  mean, variance = (
    np.mean([getattr(b, moment)(0) for b in batches], 0)
    for moment in ('mean', 'var')
  )
  np.testing.assert_allclose(found.buffers[:4], mean, rtol=1e-4)
  np.testing.assert_allclose(found.buffers[4:], variance, rtol=5e-3)
  assert toys.bits([found.mean]) == toys.bits([begin.mean])


def test_recalibrated_members_are_read_without_a_worker(monkeypatch):
  experiment = toys.experiment(
    model='toys:normalized', num_server_examples=30, batch_norm='recalibrate',
    server_parts=('ensemble',), **{'ensemble.groups': 'C'},
  )  # fmt: skip
  _, groups = toys.groups(experiment)
  # Members are read while the workers predict, which must not be disturbed.
  monkeypatch.delattr(training, 'recalibrate')
  members = list(groups['C'])
  assert len({member.buffers.tobytes() for member in members}) == 6


def frozen():
  layers = tf_keras.layers
  model = tf_keras.Sequential(
    [
      tf_keras.Input((4,)),
      layers.Dense(4),
      layers.BatchNormalization(),
      layers.BatchNormalization(name='kept'),
      layers.Dense(3),
    ]
  )
  for layer in (model.layers[0], model.layers[2]):
    layer.trainable = False
  return model


def test_recalibration_does_not_change_frozen_layers():
  worker = toys.worker(frozen)
  begin = toys.start(worker)
  seed = np.array([0, 0], np.int32)
  found = training.recalibrate([worker], begin, toys.TRAIN.x, seed=seed)
  before, after = (
    weights.unflatten(model.buffers, worker.layout.buffers)
    for model in (begin, found)
  )
  names = worker.layout.buffer_names
  for name, one, other in zip(names, before, after, strict=True):
    assert toys.same(one, other) == ('moving' not in name or 'kept' in name)

  # A model without buffers is not changed.
  begin = toys.start(toys.worker())
  assert isinstance(begin, weights.Weights)
  assert training.recalibrate([], begin, toys.TRAIN.x, seed=seed) is begin


def test_beta_interpolates_between_the_mixture_and_the_product():
  # Two clients and two classes; the product is 0.8 * 0.4 : 0.2 * 0.6 = 8 : 3.
  clients = np.array([[[0.8, 0.2]], [[0.4, 0.6]]])
  product, mixture = np.array([8 / 11, 3 / 11]), np.array([0.6, 0.4])
  between = np.sqrt([0.32 * 0.6, 0.12 * 0.4])
  for beta, expected in (
    (0.0, mixture),
    (1.0, product),
    (0.5, between / between.sum()),
  ):
    mixtures = training.Mixtures(CLASSES, {'B': beta})
    for client in clients:
      mixtures.add('B', of_samples(client[None]))
    found = mixtures.union(['B'])
    np.testing.assert_allclose(found.mean, [expected], rtol=1e-6)
    np.testing.assert_allclose(
      found.expected_entropy, -(expected * np.log(expected)).sum(), rtol=1e-6
    )


def test_beta_interpolates_between_gaussians():
  # Two clients, N(0, 1) and N(3, 0.5): the mixture has mean 1.5 and variance
  # 0.75 + 1.5^2 = 3, the product precision 1 + 2 and mean (0 + 6) / 3.
  numbers = training.Gaussian((0.0, 1.0))
  clients = [
    training.Predictive(*(np.float32(v) for v in ([[0.0]], [0.6], [0.4], [0]))),
    training.Predictive(*(np.float32(v) for v in ([[3.0]], [0.5], [0.0], [0]))),
  ]
  for beta, mean, variance in (
    (1.0, 2.0, 1 / 3),
    (0.5, (6 + 0.5) / (3 + 1 / 3), 2 / (3 + 1 / 3)),
  ):
    mixtures = training.Mixtures(numbers, {'B': beta})
    for client in clients:
      mixtures.add('B', client)
    found = mixtures.union(['B'])
    np.testing.assert_allclose(found.mean, [[mean]], rtol=1e-6)
    np.testing.assert_allclose(found.aleatoric, [variance], rtol=1e-6)
    np.testing.assert_allclose(found.epistemic, [0])
  labels = np.array([2.0 + 3**-0.5])
  assert mixtures.best_beta('B', labels) == pytest.approx(1, abs=1e-4)
  assert mixtures.best_beta('B', np.array([-6.0])) == pytest.approx(0, abs=1e-4)


def test_best_beta_maximizes_the_likelihood_of_labels():
  rng = np.random.default_rng(0)
  clients = rng.dirichlet([0.3] * 3, [4, 2000])
  scores = np.log(clients).sum(0) * 0.35 + 0.65 * np.log(clients.mean(0))
  probs = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
  labels = np.array([rng.choice(3, p=p) for p in probs])
  mixtures = training.Mixtures(CLASSES, {'B': 0.0})
  for client in clients:
    mixtures.add('B', of_samples(client[None]))
  assert mixtures.best_beta('B', labels) == pytest.approx(0.35, abs=0.04)


def test_best_beta_is_0_for_many_overconfident_clients():
  """Their product has probabilities below the range of float32."""
  right = np.where(np.arange(1000) % 10, 0.9, 1e-6)
  mixtures = training.Mixtures(CLASSES, {'B': 0.0})
  for _ in range(20):
    mixtures.add('B', of_samples(np.stack([right, 1 - right], 1)[None]))
  found = mixtures.best_beta('B', np.zeros(1000, int))
  assert found == pytest.approx(0, abs=1e-3)
