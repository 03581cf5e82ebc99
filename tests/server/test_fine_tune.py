"""Tests of the server's training on its labelled examples."""

import numpy as np
import pytest
import toys

from bfl_tf import federation
from bfl_tf.server import fine_tune

SETTINGS = {
  'num_server_examples': 30,
  'validation_split': 0.2,
  'start': ('fine_tune',),
  'fine_tune.epochs': 6,
  'fine_tune.patience': 2,
}


@pytest.fixture
def running_away(monkeypatch):
  """Runs a start whose models diverge from an epoch on."""

  def play(first):
    train, epochs = fine_tune.FineTune._train, []

    def diverging(stage, model, seed, step):
      result = train(stage, model, seed, step)
      epochs.append(result.model)
      if len(epochs) < first:
        return result
      nothing = np.full_like(result.model.point, np.nan)
      return result._replace(model=result.model._replace(point=nothing))

    monkeypatch.setattr(fine_tune.FineTune, '_train', diverging)
    return toys.rounds(toys.experiment(**SETTINGS), 0)[0], epochs

  return play


def test_the_best_epoch_outlives_those_that_ran_away(running_away):
  played, epochs = running_away(first=2)
  assert toys.same(played.state.model, epochs[0])
  assert played.info['server_epochs'] == len(epochs) == 3
  assert 0 <= played.info['server_validation_accuracy'] <= 1


def test_where_none_was_good_the_stage_is_named(running_away):
  with pytest.raises(federation.StoppedError, match='--start=fine_tune'):
    running_away(first=1)
