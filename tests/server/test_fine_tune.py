"""Tests of the server's training on its labelled examples."""

import numpy as np
import pytest
import toys

from bfl_tf import federation, training

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
    train, epochs = training.Worker.train, []

    def diverging(worker, task):
      result = train(worker, task)
      epochs.append(result.model)
      if len(epochs) < first:
        return result
      nothing = np.full_like(result.model.point, np.nan)
      return result._replace(model=result.model._replace(point=nothing))

    monkeypatch.setattr(training.Worker, 'train', diverging)
    return toys.rounds(toys.experiment(**SETTINGS), 0)[0], epochs

  return execute


def test_the_best_epoch_is_kept_if_later_epochs_diverge(diverging_run):
  played, epochs = diverging_run(first=2)
  assert toys.same(played.state.model, epochs[0])
  assert played.info['server_epochs'] == len(epochs) == 3
  assert 0 <= played.info['server_validation_accuracy'] <= 1


def test_an_error_names_the_part_if_all_epochs_diverge(diverging_run):
  with pytest.raises(federation.StoppedError, match='--start=fine_tune'):
    diverging_run(first=1)


def test_the_server_trains_with_the_fixed_prior():
  """It has no client's data, which the broadcast posterior contains."""
  changes = {
    'variant': 'flipout', 'num_server_examples': 30, 'num_workers': 1,
    'server_parts': ('fine_tune',), 'fine_tune.epochs': 2,
    'fine_tune.patience': 0,
  }  # fmt: skip
  models = []
  for moving in (True, False):
    pieces = toys.experiment(**changes, **{'flipout.update_prior': moving})
    (part,), start = pieces.plan.servers, pieces.initial_weights()
    narrow = start._replace(scale=start.scale / 100)
    found = toys.stepped(part, narrow, narrow, tools=pieces.tools)
    models.append(found.model)
  assert toys.same(*models)
