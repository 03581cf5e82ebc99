"""Tests of the round loop: order, sampling, memories, scores and FedAvg."""

import secrets
import types

import fake
import numpy as np
import pytest
import toys

from bfl_tf import federation, seeds, training
from bfl_tf.federation import engine, evaluation

FLIPOUT = {'variant': 'flipout', 'sgd.momentum': 0.5}
COUNTING = {
  'client_parts': ('toys:Counter',),
  'batch_size': 150,  # One step per epoch.
  'clients_per_round': 3,
  'constant.min_epochs': 2,
  'local_epochs': 4,
}


def backwards(workers, jobs, run):
  """Replaces `training.in_parallel`; the last client is first."""
  yield from (run(workers[0], job) for job in reversed(list(jobs)))


@pytest.mark.parametrize(
  'changes',
  [
    FLIPOUT,
    {**FLIPOUT, 'pooling': 'lp', 'weighting': 'max_discrepancy'},
    {**FLIPOUT, 'pooling': 'wc', 'weighting': 'distance'},
    {**FLIPOUT, 'pooling': 'ws', 'privacy': 'central'},
  ],
)
def test_workers_and_order_of_arrival_change_no_bits(changes, monkeypatch):
  monkeypatch.setattr(secrets, 'token_bytes', bytes)
  one, infos = toys.execute(toys.experiment(num_workers=1, **changes))
  two, others = toys.execute(toys.experiment(num_workers=2, **changes))
  assert toys.same(one, two)
  assert infos == others
  monkeypatch.setattr(training, 'in_parallel', backwards)
  last, others = toys.execute(toys.experiment(num_workers=1, **changes))
  assert toys.same(one, last)
  assert infos == others


def test_clients_are_sampled_without_replacement_and_keep_their_memory():
  experiment = toys.experiment(**COUNTING)
  state, infos = toys.execute(experiment, 8)
  kept = {k: memory['counter'] for k, memory in state.memories.items()}
  # Each round has three different clients, so no memory is overwritten.
  assert sum(memory['rounds'] for memory in kept.values()) == 3 * 8
  assert {info['clients_pooled'] for info in infos} == {3}
  assert len(kept) == 6
  # All epochs between the bounds occur; the rows have the number of steps.
  epochs = [memory['steps'][: memory['rounds']] for memory in kept.values()]
  assert set(np.concatenate(epochs)) == {2, 3, 4}
  steps = sum(info['local_steps'] for info in infos)
  assert steps == sum(memory['steps'].sum() for memory in kept.values())
  again, repeated = toys.execute(experiment, 8)
  assert toys.same(state, again)
  assert infos == repeated


def test_fedavg_is_the_weighted_mean_of_separately_trained_clients():
  experiment = toys.experiment(local_epochs=2)
  state = federation.initial_state(experiment).state
  for round_index in range(2):
    points = []
    for client, indices in enumerate(experiment.partition):
      seed = seeds.named(0, 'local_training', round_index, client)
      steps = 2 * -(-len(indices) // 32)
      rates = np.full(steps, 0.1, np.float32)
      job = training.ClientTask(state.model, indices, rates, seed)
      points.append(experiment.workers[0].train(job).model.point)
    sizes = [len(indices) for indices in experiment.partition]
    expected = np.average(np.float64(points), axis=0, weights=sizes)
    state = federation.federated_round(experiment, state).state
    assert np.array_equal(state.model.point, np.float32(expected))


def test_bytes_to_and_from_clients_are_counted():
  bare, extra = (
    toys.execute(toys.experiment(**changes), 1)[1][0]
    for changes in ({'clients_per_round': 3}, COUNTING)
  )
  assert bare['bytes_up'] == bare['bytes_down'] == 3 * 15 * 4
  # The part adds two float32 numbers.
  assert extra['bytes_up'] == 3 * (15 + 2) * 4


def test_the_broadcast_of_a_repeated_request_is_counted():
  experiment = toys.experiment(min_clients=6)
  requests = []

  def replies(pieces, state, clients):
    requests.append(list(clients))
    found = dict(engine.Local()(pieces, state, clients))
    if len(requests) == 1:
      found[2] = RuntimeError('no power')
    return iter(found.items())

  _, (info,) = toys.execute(experiment, 1, engine=toys.Engine(replies))
  assert requests == [[0, 1, 2, 3, 4, 5], [2]]
  assert info['bytes_down'] == 7 * 15 * 4


def test_a_failing_client_is_rejected_and_an_interrupt_stops_the_run(
  monkeypatch,
):
  experiment = toys.experiment()
  bad = experiment.partition[2]
  errors = [RuntimeError('no power\nand no lines'), KeyboardInterrupt()]
  for worker in experiment.workers:

    def train(job, original=worker.train, **labels):
      if job.indices is bad:
        raise errors[0]
      return original(job, **labels)

    monkeypatch.setattr(worker, 'train', train)
  _, (info,) = toys.execute(experiment, 1)
  reason = '2: it raised RuntimeError: no power ('
  assert info['rejected_reasons'].startswith(reason)
  short = toys.changed(experiment, min_clients=6)
  with pytest.raises(federation.TooFewClientsError, match='2: it raised'):
    toys.execute(short, 1)
  del errors[0]
  with pytest.raises(KeyboardInterrupt):
    toys.execute(experiment, 1)


def test_the_server_fraction_sets_the_number_of_server_examples():
  """The fraction is of 150 examples, a fifth of which may be validation."""
  for split, fraction, number in ((0.0, 0.2, 30), (0.2, 0.05, 6)):
    settings = {'validation_split': split}
    held = toys.experiment(server_fraction=fraction, **settings).server_indices
    same = toys.experiment(num_server_examples=number, **settings)
    assert held.tolist() == same.server_indices.tolist()
    assert len(held) == number


def test_uneven_classes_have_scores_that_accuracy_hides():
  labels = np.array([0] * 18 + [1] * 2)
  risk = np.linspace(0.0, 0.4, 20)  # Both events have the largest risks.
  zeros = np.zeros(20, np.float32)
  predictive = training.Predictive(
    np.stack([1 - risk, risk], -1), zeros, zeros, zeros
  )
  test = types.SimpleNamespace(y=labels)
  dataset = types.SimpleNamespace(test=test, class_names=None, num_classes=2)
  scores = evaluation.of_test(
    fake.CONFIG, dataset, training.Categorical(), predictive, labels
  )
  found = [scores[name] for name in ('accuracy', 'balanced_accuracy', 'auroc')]
  assert found == pytest.approx([0.9, 0.5, 1.0])
  assert scores['recall_class_1'] == 0
