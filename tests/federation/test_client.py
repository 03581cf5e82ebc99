"""Tests of client training and of custom engines."""

import threading

import numpy as np
import pytest
import toys

from bfl_tf import federation

SETTINGS = {
  'client_parts': ('toys:Counter', 'toys:Follower'), 'clients_per_round': 4,
  'local_epochs': 3, 'schedule': 'exponential', 'exponential.min_epochs': 1,
  'exponential.decay': 0.5,
}  # fmt: skip


def test_a_task_has_the_seed_rate_and_memory_of_its_client_and_round():
  plan = federation.Plan.of(toys.experiment(**SETTINGS).config)
  model = toys.start(toys.worker())
  shared = {'follower': np.zeros(15)}
  indices = np.arange(9, dtype=np.int32)

  def task(round_index=0, client=1, memory=None):
    broadcast = federation.Broadcast(round_index, model, shared, 90)
    return federation.client_task(plan, broadcast, client, indices, memory)

  assert toys.same(task(), task())
  assert task().seed.tolist() != task(client=2).seed.tolist()
  assert task().seed.tolist() != task(round_index=1).seed.tolist()
  rates = [task(round_index).rates[0] for round_index in range(3)]
  np.testing.assert_allclose(rates, [0.1, 0.05, 0.025], rtol=1e-6)
  # A personalized model, after the last round, has the rate of that round.
  last = plan.config.num_rounds
  assert task(last).rates[0] == task(last - 1).rates[0]
  assert set(task().memory) == {'counter', 'follower'}
  kept = {'counter': {'rounds': np.int32(7), 'steps': np.ones(50, np.int32)}}
  # A memory that is not in the checkpoint has its initial value.
  assert task(memory=kept).memory['counter']['rounds'] == 7
  assert task(memory=kept).memory['follower'].tolist() == [0] * 15


@pytest.mark.parametrize('kl_examples, others', [('own', 0), ('all', 81)])
def test_the_divergence_may_count_the_examples_of_all_clients(
  kl_examples, others
):
  experiment = toys.experiment(
    **{'variant': 'flipout', 'flipout.kl_examples': kl_examples}
  )
  start = federation.initial_state(experiment).state
  assert experiment.broadcast(start).num_examples == 150
  # The server's examples are not those of a client.
  held = toys.experiment(num_server_examples=30)
  start_held = federation.initial_state(held).state
  assert held.broadcast(start_held).num_examples == 120
  broadcast = experiment.broadcast(start)._replace(num_examples=90)
  indices = np.arange(9, dtype=np.int32)
  task = federation.client_task(experiment.plan, broadcast, 1, indices)
  assert task.other_examples == others


def test_the_divergence_is_tempered_and_annealed_by_the_round():
  changes = {
    'variant': 'flipout',
    'flipout.annealing_rounds': 4,
    'flipout.temperature': 0.5,
  }
  experiment = toys.experiment(**changes)
  state = federation.initial_state(experiment).state
  indices = np.arange(9, dtype=np.int32)
  weights = [
    federation.client_task(
      experiment.plan,
      experiment.broadcast(state._replace(round=index)),
      1,
      indices,
    ).kl_weight
    for index in range(6)
  ]
  assert weights == [0.125, 0.25, 0.375, 0.5, 0.5, 0.5]
  # A personalized model is trained without annealing.
  alone = federation.Plan.of(experiment.config).for_one_site()
  assert alone.objective.kl_weight(0) == 0.5


def test_an_invalid_task_leaves_the_worker_usable():
  worker = toys.worker(parts=(toys.Counter(),))
  begin = toys.start(worker)
  memory = {'counter': toys.Counter().memory(begin)}
  good = toys.task(begin, memory=memory)
  expected = worker.train(good)
  cut = {'counter': {**memory['counter'], 'steps': np.zeros([49], np.int32)}}
  for memory in (cut, {}):
    with pytest.raises(TypeError):
      worker.train(good._replace(memory=memory))
  with pytest.raises(TypeError):
    worker.train(good, x=toys.TRAIN.x[:, :3])
  # An error must release TensorFlow's lock, or other threads wait forever.
  found = []
  other = threading.Thread(
    target=lambda: found.append(worker.train(good)), daemon=True
  )
  other.start()
  other.join(timeout=60)
  assert toys.same(*found, expected) and len(found) == 1
