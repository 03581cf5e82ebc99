"""An update that must not be pooled is left out, counted and named."""

import fake
import numpy as np
import pytest
import toys

from bfl_tf import federation

COUNTING = {'client_parts': ('toys:Counter',)}


def sending(*bad):
  """An engine, of which some clients do what the pairs say."""

  def engine(experiment, state, clients):
    for arrival in fake.engine(experiment, state, clients):
      for client, change in bad:
        if arrival.client == client:
          arrival = change(arrival)
      yield arrival

  return engine


def no_number(arrival):
  model = arrival.update.model
  model = model._replace(point=np.full_like(model.point, np.nan))
  return arrival._replace(update=arrival.update._replace(model=model))


def no_memory(arrival):
  return arrival._replace(memory={})


def fail(arrival):
  error = RuntimeError('no power\nand no lines')
  return federation.Arrival(arrival.client, None, {}, error)


@pytest.mark.parametrize(
  'change, reason',
  [
    (no_number, 'its point is not finite'),
    (no_memory, 'its memory counter'),
    (fail, 'it raised RuntimeError: no power'),
  ],
)
def test_a_bad_client_is_left_out_counted_and_named(change, reason):
  experiment = toys.experiment(**COUNTING)
  good = [0, 1, 3, 4, 5]
  engine = sending((2, change))
  start = federation.initial_state(experiment).state
  updates = [fake.arrival(experiment, start, client).update for client in good]
  state, (info,) = toys.play(experiment, 1, engine=engine)
  assert (info['clients_pooled'], info['left_out']) == (5, '2')
  sizes = [len(experiment.partition[client]) for client in good]
  expected = np.average(
    [np.float64(update.model.mean) for update in updates], 0, sizes
  )
  np.testing.assert_allclose(state.model.mean, expected, rtol=1e-6, atol=1e-7)
  # A memory is committed only with an accepted update.
  assert 2 not in state.memories
  experiment = toys.changed(experiment, min_clients=6)
  with pytest.raises(federation.TooFewClientsError, match=f'2: {reason}'):
    toys.play(experiment, 1, engine=engine)


def test_who_fails_in_training_is_left_out_and_an_interrupt_is_not(monkeypatch):
  experiment = toys.experiment()
  bad = experiment.partition[2]
  errors = [RuntimeError('no power'), KeyboardInterrupt()]
  for worker in experiment.workers:

    def train(job, original=worker.train, **labels):
      if job.indices is bad:
        raise errors[0]
      return original(job, **labels)

    monkeypatch.setattr(worker, 'train', train)
  _, (info,) = toys.play(experiment, 1)
  assert info['left_out_reasons'] == '2: it raised RuntimeError: no power'
  del errors[0]
  with pytest.raises(KeyboardInterrupt):
    toys.play(experiment, 1)
