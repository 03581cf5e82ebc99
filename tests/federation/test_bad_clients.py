"""Tests of clients whose training fails."""

import pytest
import toys

from bfl_tf import federation


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
