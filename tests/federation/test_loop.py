"""The round loop: order, sampling, bad clients, and FedAvg by hand."""

import dataclasses
import functools

import numpy as np
import pytest
import toys

from bfl_tf import federation, seeds, training

BUILT = {}  # Compiled workers, shared by the experiments of this file.
FLIPOUT = {'variant': 'flipout', 'client_momentum': 0.5}
COUNTING = {
  'client_parts': ('toys:Counter',),
  'batch_size': 150,  # One step an epoch.
  'clients_per_round': 3,
  'min_local_epochs': 2,
  'local_epochs': 4,
}


def build(**changes):
  config = {
    'dataset': 'toys:blobs',
    'model': 'logistic',
    'variant': 'deterministic',
    'num_clients': 6,
    'partition': 'dirichlet',
    'min_examples': 5,
    'client_optimizer': 'sgd',
    'client_learning_rate': 0.1,
  } | changes
  return federation.Experiment.build(federation.Config(**config), BUILT)


def play(experiment, num_rounds=2):
  (state, _), infos = federation.initial_state(experiment), []
  for _ in range(num_rounds):
    state, info = federation.federated_round(experiment, state)
    infos.append(info)
  return state, infos


def backwards(workers, jobs, run):
  """`training.in_parallel`, the last client first."""
  yield from (run(workers[0], job) for job in reversed(list(jobs)))


@pytest.mark.parametrize(
  'changes',
  [
    {},
    {**FLIPOUT, 'pooling': 'lp', 'weighting': 'max_discrepancy'},
    {**FLIPOUT, 'pooling': 'wc', 'weighting': 'distance'},
    {**FLIPOUT, 'pooling': 'dwc', 'update_prior': True},
  ],
)
def test_workers_and_order_of_arrival_change_no_bits(changes, monkeypatch):
  one, infos = play(build(num_workers=1, **changes))
  two, others = play(build(num_workers=2, **changes))
  assert toys.same(one, two)
  assert infos == others
  monkeypatch.setattr(training, 'in_parallel', backwards)
  last, others = play(build(num_workers=1, **changes))
  assert toys.same(one, last)
  assert infos == others


def test_workers_are_traced_once_over_clients_rounds_and_epochs():
  experiment = build(**COUNTING)
  play(experiment, 3)
  assert [worker.num_traces for worker in experiment.workers] == [1, 1]


def test_clients_are_drawn_without_repetition_and_memory_is_carried():
  experiment = build(**COUNTING)
  state, infos = play(experiment, 8)
  kept = {k: memory['counter'] for k, memory in state.memories.items()}
  # Three different clients each round: else a memory would be overwritten.
  assert sum(memory['rounds'] for memory in kept.values()) == 3 * 8
  assert {info['clients_pooled'] for info in infos} == {3}
  assert len(kept) == 6
  # Epochs between the bounds, each drawn; as many steps as the rows say.
  epochs = [memory['steps'][: memory['rounds']] for memory in kept.values()]
  assert set(np.concatenate(epochs)) == {2, 3, 4}
  steps = sum(info['local_steps'] for info in infos)
  assert steps == sum(memory['steps'].sum() for memory in kept.values())
  again, repeated = play(experiment, 8)
  assert toys.same(state, again)
  assert infos == repeated


def test_who_is_drawn_depends_on_round_and_seed():
  experiment = build(**COUNTING)

  def drawn(seed):
    config = dataclasses.replace(experiment.config, seed=seed)
    state, _ = play(dataclasses.replace(experiment, config=config), 1)
    return frozenset(state.memories)

  assert len({drawn(seed) for seed in range(6)}) > 3


def poisoned(experiment, monkeypatch, change, client=2):
  """Changes what a client sends."""
  bad = experiment.partition[client]

  def train(original, job):
    result = original(job)
    return change(result) if job.indices is bad else result

  for worker in experiment.workers:
    changed = functools.partial(train, worker.train)
    monkeypatch.setattr(worker, 'train', changed)


def change_model(name, value):
  def change(result):
    vector = getattr(result.model, name).copy()
    vector[3] = value
    return result._replace(model=result.model._replace(**{name: vector}))

  return change


def change_extra(result):
  return result._replace(extra={'counter': np.float32([1, np.inf])})


def cut(result):
  model = result.model._replace(point=result.model.point[1:])
  return result._replace(model=model)


@pytest.mark.parametrize(
  'changes, change, reason',
  [
    ({}, change_model('point', np.nan), 'its point is not finite'),
    (FLIPOUT, change_model('loc', -np.inf), 'its loc is not finite'),
    (FLIPOUT, change_model('scale', 0.0), 'its scale is not positive'),
    ({}, cut, r'its point has shape \(14,\), not \(15,\)'),
    (COUNTING | {'clients_per_round': 0}, change_extra, 'its counter is not'),
  ],
)
def test_a_bad_client_is_left_out_counted_and_named(
  changes, change, reason, monkeypatch
):
  experiment = build(**changes)
  sizes = [0 if k == 2 else len(p) for k, p in enumerate(experiment.partition)]
  good = []

  def spy(rule, update, *rest):
    good.append(update)
    return accumulate(rule, update, *rest)

  accumulate = type(experiment.rule).accumulate
  monkeypatch.setattr(type(experiment.rule), 'accumulate', spy)
  poisoned(experiment, monkeypatch, change)
  state, (info,) = play(experiment, 1)
  assert (info['clients_pooled'], info['clients_left_out']) == (5, 1)
  assert info['left_out'] == '2'
  assert sorted(update.client_id for update in good) == [0, 1, 3, 4, 5]
  means = {update.client_id: update.model.mean for update in good}
  expected = sum(sizes[k] * mean.astype(float) for k, mean in means.items())
  np.testing.assert_allclose(
    state.model.mean, expected / sum(sizes), rtol=1e-6, atol=1e-7
  )
  # A memory is committed only with an accepted update.
  assert 2 not in state.memories

  config = dataclasses.replace(experiment.config, min_clients=6)
  experiment = dataclasses.replace(experiment, config=config)
  message = rf'round 0: 5 accepted .* --min_clients=6 \(2: {reason}'
  with pytest.raises(federation.TooFewClientsError, match=message):
    play(experiment, 1)


def test_fedavg_is_the_mean_of_clients_trained_apart():
  experiment = build(local_epochs=2)
  state, _ = federation.initial_state(experiment)
  for round_index in range(2):
    points = []
    for client, indices in enumerate(experiment.partition):
      seed = seeds.named(0, 'local_training', round_index, client)
      rate, epochs = np.float32(0.1), np.int32(2)
      job = training.Job(state.model, indices, epochs, rate, seed)
      points.append(experiment.workers[0].train(job).model.point)
    sizes = [len(indices) for indices in experiment.partition]
    expected = np.average(np.float64(points), axis=0, weights=sizes)
    state, _ = federation.federated_round(experiment, state)
    assert np.array_equal(state.model.point, np.float32(expected))


def test_what_a_client_sends_is_counted():
  bare, extra = (
    play(build(**changes), 1)[1][0]
    for changes in ({'clients_per_round': 3}, COUNTING)
  )
  assert bare['bytes_up'] == bare['bytes_down'] == 3 * 15 * 4
  # Two float32 more, by the part.
  assert extra['bytes_up'] == 3 * (15 + 2) * 4
