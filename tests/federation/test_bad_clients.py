"""An update that must not be pooled is left out, counted and named."""

import functools

import numpy as np
import pytest
import toys

from bfl_tf import federation
from bfl_tf.federation import admission

FLIPOUT = {'variant': 'flipout'}
COUNTING = {'client_parts': ('toys:Counter',)}


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


def change_extra(value):
  return lambda result: result._replace(extra=value)


def cut_memory(result):
  memory = result.memory['counter']
  memory = {'counter': {**memory, 'steps': memory['steps'][1:]}}
  return result._replace(memory=memory)


def fail(result):
  raise RuntimeError('no power\nand no lines')


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
    (
      COUNTING,
      change_extra({'counter': np.float32([1, np.inf])}),
      'its extra counter is not finite',
    ),
    (
      COUNTING,
      change_extra({'counter': np.ones([2, 1], np.float32)}),
      r'its extra counter has shape \(2, 1\), not \(2,\)',
    ),
    (COUNTING, change_extra({}), 'its extra counter is missing'),
    (COUNTING, cut_memory, r'its memory counter steps has shape \(49,\)'),
    ({}, fail, r'it raised RuntimeError: no power \(.*, line \d+\)\)'),
  ],
)
def test_a_bad_client_is_left_out_counted_and_named(
  changes, change, reason, monkeypatch
):
  experiment = toys.experiment(**changes)
  sizes = [0 if k == 2 else len(p) for k, p in enumerate(experiment.partition)]
  good = []

  def spy(rule, update, *rest):
    good.append(update)
    return accumulate(rule, update, *rest)

  accumulate = type(experiment.method.rule).accumulate
  monkeypatch.setattr(type(experiment.method.rule), 'accumulate', spy)
  poisoned(experiment, monkeypatch, change)
  state, (info,) = toys.play(experiment, 1)
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

  experiment = toys.changed(experiment, min_clients=6)
  message = rf'round 0: 5 accepted .* --min_clients=6 \(2: {reason}'
  with pytest.raises(federation.TooFewClientsError, match=message):
    toys.play(experiment, 1)


def test_the_reasons_of_many_are_told_once(monkeypatch):
  experiment = toys.experiment(min_clients=5)
  for client in (4, 1):
    poisoned(experiment, monkeypatch, fail, client)
  message = r'--min_clients=5 \(1, 4: it raised RuntimeError: no power \('
  with pytest.raises(federation.TooFewClientsError, match=message):
    toys.play(experiment, 1)


def test_a_row_tells_ten_reasons(monkeypatch):
  experiment = toys.experiment(num_clients=14)

  def refused(arrival, *unused):
    return f'reason {arrival.client}' if arrival.client else None

  monkeypatch.setattr(admission, 'find_defect', refused)
  _, (info,) = toys.play(experiment, 1)
  assert info['left_out_reasons'].startswith('1: reason 1; 2: reason 2; 3: ')
  assert info['left_out_reasons'].endswith('; 10: reason 10; and 3 more')


@pytest.mark.parametrize('interrupt', [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_no_bad_client(interrupt, monkeypatch):
  def stop(result):
    raise interrupt

  experiment = toys.experiment()
  poisoned(experiment, monkeypatch, stop)
  with pytest.raises(interrupt):
    toys.play(experiment, 1)
