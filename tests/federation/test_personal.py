"""Tests of local layers and of the scores of personal models."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_probability import distributions as tfd
import toys

import bfl_tf
from bfl_tf import metrics, parts, runs, training
from bfl_tf.federation import evaluation, personal
from bfl_tf.methods.ditto import Ditto
from bfl_tf.methods.local_layers import LocalLayers
from bfl_tf.methods.pfedbayes import PFedBayes

BIAS = {
  'client_parts': ('local_layers',),
  'local_layers.layers': '0/bias',
}
# A logistic regression: 12 numbers of the kernel, then 3 of the bias.
LOCAL = np.arange(15) >= 12


def test_a_client_trains_its_own_layers_and_sends_those_of_the_broadcast():
  plain = toys.worker()
  own = LocalLayers(layers='0/bias', run=parts.RunFacts(layout=plain.layout))
  worker = toys.worker(parts=(own,))
  start = toys.start(worker)
  memory = {own.name: parts.numpy(own.memory(start))}
  first = worker.train(toys.task(start, memory=memory))
  expected = plain.train(toys.task(start)).model.mean
  kept = first.memory[own.name]
  assert np.array_equal(kept['mean'], expected[LOCAL])
  sent = first.model.mean
  assert np.array_equal(sent[LOCAL], start.mean[LOCAL])
  assert np.array_equal(sent[~LOCAL], expected[~LOCAL])
  # The next training begins at the client's own bias.
  second = worker.train(toys.task(start, memory={own.name: kept}))
  mixed = start.replace_mean(np.r_[start.mean[~LOCAL], kept['mean']])
  expected = plain.train(toys.task(mixed)).model.mean
  assert np.array_equal(second.memory[own.name]['mean'], expected[LOCAL])


def test_the_personal_models_of_a_round_are_scored():
  changes = {'attack': ('label_flip',), 'validation_split': 0.3}
  pieces = toys.experiment(**BIAS, **changes)
  *_, second = toys.rounds(pieces, 2)
  begun = toys.rounds(pieces, 0)[0].state.model
  model = second.state.model
  assert np.array_equal(model.mean[LOCAL], begun.mean[LOCAL])
  scores = evaluation.evaluate(pieces, second, last=False).scores
  honest = [c for c in range(6) if not pieces.plan.attacks_of(c)]
  for split, prefix in (('validation', 'validation_'), ('test', '')):
    rows, found = pieces.personal_rows(split), []
    assert list(rows) == honest and len(honest) == 5
    for client in honest:
      bias = second.state.memories[client]['local_layers']['mean']
      own = model.replace_mean(np.r_[model.mean[~LOCAL], bias])
      x, y, *_ = pieces.dataset.splits[split].take(rows[client])
      predicted = training.predict(pieces.workers, own, x, seed=[0, 0])
      found.append(metrics.accuracy(predicted.mean, y))
    accuracy = scores[f'{prefix}personal_accuracy']
    assert accuracy == pytest.approx(np.mean(found))
  assert scores['personal_lowest_accuracy'] == min(found)
  assert scores['personal_untrained'] == 0
  sampled = toys.experiment(**BIAS, clients_per_round=2)
  *_, last = toys.rounds(sampled, 1)
  few, of_clients = personal.evaluate(sampled, last.state)
  assert few['personal_untrained'] == 4
  mean = np.mean([row['accuracy'] for row in of_clients])
  assert mean == pytest.approx(few['personal_accuracy'])
  assert (
    'personal_accuracy'
    not in evaluation.evaluate(
      toys.experiment(), toys.rounds(toys.experiment(), 1)[-1], last=False
    ).scores
  )


def test_test_examples_have_the_class_shares_of_the_client():
  pieces = toys.experiment()
  train, test = pieces.dataset.train.y, pieces.dataset.test.y
  for client, rows in pieces.personal_rows().items():
    assert len(set(rows)) == len(rows)
    shares = [
      np.bincount(labels, minlength=3) / len(labels)
      for labels in (train[pieces.partition[client]], test[rows])
    ]
    np.testing.assert_allclose(*shares, atol=2 / len(rows))


def test_batch_normalization_stays_on_the_clients():
  changes = {
    'model': 'resnet8', 'dataset': 'test_draws:images', 'num_clients': 2,
    'partition': 'iid', 'client_parts': ('local_layers',), 'min_clients': 2,
  }  # fmt: skip
  pieces = toys.experiment(**changes)
  begun, after = (each.state.model for each in toys.rounds(pieces, 1))
  assert np.array_equal(begun.buffers, after.buffers)
  names = pieces.plan.layout.names()
  sizes = [shape.num_elements() for shape in pieces.plan.layout.point]
  kept = np.repeat([name.endswith(('gamma', 'beta')) for name in names], sizes)
  assert np.array_equal(begun.mean[kept], after.mean[kept])
  assert not np.array_equal(begun.mean[~kept], after.mean[~kept])
  with pytest.raises(ValueError, match='batch_norm=recalibrate'):
    toys.experiment(**changes, batch_norm='recalibrate', num_server_examples=9)


def test_with_a_fixed_global_posterior_the_personal_one_is_variational():
  """It is the client's posterior with the broadcast as its prior."""
  own = PFedBayes(rate=0.0)
  broadcast = training.Inference(training.Objective(update_prior=True))
  worker = toys.worker(variant='flipout', parts=(own,))
  plain = toys.worker(variant='flipout', inference=broadcast)
  start = toys.start(worker)
  memory = {own.name: own.memory(start)}
  found = worker.train(toys.task(start, memory=memory, epochs=3))
  expected = plain.train(toys.task(start, epochs=3)).model
  np.testing.assert_allclose(
    found.memory['pfedbayes']['loc'], expected.loc, rtol=1e-4, atol=1e-6
  )
  np.testing.assert_allclose(
    found.memory['pfedbayes']['scale'], expected.scale, rtol=1e-4
  )
  np.testing.assert_allclose(found.model.loc, start.loc, rtol=1e-6)
  np.testing.assert_allclose(found.model.scale, start.scale, rtol=1e-5)
  # The next round begins at the personal posterior.
  again = worker.train(toys.task(start, memory=found.memory, rate=1e-9))
  for name, values in found.memory['pfedbayes'].items():
    np.testing.assert_allclose(again.memory['pfedbayes'][name], values, 1e-4)


def test_the_global_posterior_of_a_client_moves_down_the_divergence():
  """A step equals the gradient of KL[q || w], which autodiff computes."""
  part, rng = PFedBayes(rate=0.01), np.random.default_rng(0)
  mean, loc = (np.float32(rng.normal(size=5)) for _ in range(2))
  scale, rho = (
    np.float32(rng.uniform(0.1, 1, 5)),
    np.float32(rng.normal(size=5)),
  )
  carry = {'loc': tf.Variable(loc), 'rho': tf.Variable(rho)}
  with tf.GradientTape() as tape:
    prior = part.prior(carry)
    divergence = tfd.kl_divergence(
      tfd.MultivariateNormalDiag(mean, scale),
      tfd.MultivariateNormalDiag(prior.loc, prior.scale),
    )
  expected = tape.gradient(divergence, carry)
  step = training.Step(0, 0.1, None, 9.0, scale=tf.constant(scale))
  _, moved = part.after(tf.constant(mean), carry, step)
  for name, before in (('loc', loc), ('rho', rho)):
    np.testing.assert_allclose(
      moved[name], before - 0.01 * expected[name], rtol=1e-5, atol=1e-6
    )


def test_dittos_second_training_is_penalized_and_stays_on_the_client():
  """A full-batch step of each training, by hand."""
  own, plain = Ditto(weight=0.5), toys.worker(batch_size=50)
  worker = toys.worker(batch_size=50, parts=(own,))
  start = toys.start(worker)
  away = start.replace_mean(start.mean + np.float32(0.3))
  memory = {'ditto': own.memory(away)}
  found = worker.train(toys.task(start, memory=memory, batch_size=50))
  sent = plain.train(toys.task(start, batch_size=50)).model
  assert np.array_equal(found.model.mean, sent.mean)
  step = plain.train(toys.task(away, batch_size=50)).model.mean - away.mean
  pull = 0.1 * 0.5 * (start.mean - away.mean)
  point = found.memory['ditto']['point']
  np.testing.assert_allclose(point, away.mean + step + pull, atol=1e-6)
  personal_model = own.personal(start, found.memory['ditto'])
  assert np.array_equal(personal_model.mean, point)


def test_a_loaded_run_has_the_personal_models(tmp_path):
  pieces = toys.experiment(client_parts=('ditto',), num_rounds=2)
  path = tmp_path / 'run'
  runs.Run(pieces.config, path, False, toys.BUILT, draw_plots=False).execute()
  *_, last = toys.rounds(pieces, 2)
  run = bfl_tf.load(tmp_path / 'run')
  kept = last.state.memories[4]['ditto']['point']
  assert np.array_equal(run.memory('4')['ditto']['point'], kept)
  assert np.array_equal(run.personal('4').weights.mean, kept)
  rows = pieces.personal_rows()
  x, y, *_ = pieces.dataset.test
  found = [
    metrics.accuracy(run.personal(str(client)).predict(x[at]).probs, y[at])
    for client, at in rows.items()
  ]
  summary = json.loads((tmp_path / 'run' / 'summary.json').read_text('utf-8'))
  scored = summary['final']['personal_accuracy']
  assert scored == pytest.approx(np.mean(found))
  with pytest.raises(ValueError, match="no client 'x'"):
    run.personal('x')
