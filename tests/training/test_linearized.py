"""Tests of predictions with a linearized network."""

import functools

import numpy as np
import tensorflow as tf
import toys

from bfl_tf import models, training, weights


def test_the_product_with_the_jacobian_is_exact(variant='flipout'):
  build = functools.partial(
    models.build, 'mlp', variant=variant, input_shape=(4,), num_classes=3,
    hidden_units=(5,),
  )  # fmt: skip
  inference = training.Inference(by_samples=False, is_linearized=True)
  worker = toys.worker(build, variant, inference=inference)
  x = toys.TRAIN.x[:7]
  size = worker.layout.num_trainable()
  change = np.random.default_rng(0).normal(0, 0.3, size)
  (found,) = training.predict_linearized(
    [worker], toys.start(worker), [change.astype(np.float32)], x
  )
  variables, rhos = worker.variables.mean, worker.variables.untransformed_scale
  with tf.GradientTape() as tape, models.scope(tf.zeros([2], tf.int32), rhos,
                                               'none'):  # fmt: skip
    logits = worker.model(x)
  jacobians = tape.jacobian(logits, variables)
  pieces = weights.unflatten(change, [v.shape for v in variables])
  for jacobian, piece in zip(jacobians, pieces):
    axes = piece.ndim if isinstance(piece, np.ndarray) else piece.shape.rank
    logits += tf.tensordot(jacobian, tf.cast(piece, tf.float32), axes)
  np.testing.assert_allclose(found.mean, tf.nn.softmax(logits), atol=1e-6)


def test_a_linear_model_predicts_as_with_samples():
  changes = {'client_optimizer': 'laplace', 'final_num_mc_samples': 5}
  found = []
  for way in ('samples', 'linearized'):
    experiment = toys.experiment(**changes, predict_with=way)
    result = toys.federation.initial_state(experiment)
    result = toys.federation.federated_round(experiment, result.state)
    found.append(
      toys.federation.evaluation.evaluate(experiment, result, True).predictive
    )
  for one, other in zip(*found):
    np.testing.assert_allclose(one, other, atol=1e-5)
  assert found[0].epistemic.max() > 0.01
