"""Tests of the server's training on its labelled examples."""

import numpy as np
import pytest
import toys

from bfl_tf import federation, seeds
from bfl_tf.server import fine_tune

SEED = seeds.named(0, 'test')
SETTINGS = {
  'num_server_examples': 30,
  'validation_split': 0.2,
  'start': ('fine_tune',),
  'fine_tune.epochs': 6,
  'fine_tune.patience': 2,
}


@pytest.fixture
def diverging_run(monkeypatch):
  """Runs the fine-tuning; its models diverge from epoch `first` on."""

  def execute(first):
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

  return execute


def test_the_best_epoch_is_kept_if_later_epochs_diverge(diverging_run):
  played, epochs = diverging_run(first=2)
  assert toys.same(played.state.model, epochs[0])
  assert played.info['server_epochs'] == len(epochs) == 3
  assert 0 <= played.info['server_validation_accuracy'] <= 1


def test_an_error_names_the_stage_if_all_epochs_diverge(diverging_run):
  with pytest.raises(federation.StoppedError, match='--start=fine_tune'):
    diverging_run(first=1)


def test_the_server_trains_with_the_fixed_prior():
  """It has no client's data, which the broadcast posterior contains."""
  changes = {
    'variant': 'flipout', 'num_server_examples': 30, 'refine': ('fine_tune',),
    'fine_tune.epochs': 2, 'fine_tune.patience': 0, 'num_workers': 1,
  }  # fmt: skip
  pieces = toys.experiment(**changes, **{'flipout.update_prior': True})
  (stage,) = pieces.method.stages
  start = federation.initial_state(pieces).state.model
  narrow = start._replace(scale=start.scale / 100)
  found = stage._train(narrow, SEED, 0).model
  fixed = toys.experiment(**changes)
  (other,) = fixed.method.stages
  assert toys.same(found, other._train(narrow, SEED, 0).model)
