"""What a run says of itself."""

import csv
import dataclasses
import logging
import math
from typing import ClassVar

import numpy as np
import pytest

from bfl_tf import config as config_lib
from bfl_tf import runs as runs_lib
from bfl_tf.runs import forgetting, progress


@dataclasses.dataclass(frozen=True)
class Forget:
  """From the third round on nothing is left of what was learned."""

  name: ClassVar[str] = 'forget'
  statistics: ClassVar[tuple] = ()

  def __call__(self, state, *unused):
    if state.round < 2:
      return state, {}
    mean = np.zeros_like(state.model.mean)
    return state._replace(model=state.model.replace_mean(mean)), {}


def test_a_line_a_round_with_the_time_left(capsys):
  with progress.Progress(10, enabled=True) as shown:
    shown.begin(7)
    shown.report({'round': 8, 'train_seconds': 50.0, 'train_loss': 0.25})
    shown.report({'round': 9, 'train_seconds': 60.0, 'evaluate_seconds': 30.0})
    shown.report({'round': 10, 'train_seconds': 50.0, 'accuracy': 0.5})
  assert capsys.readouterr().out.splitlines() == [
    'round  8/10  train_loss 0.25  50.0 s, 01:40 left',
    # Of those played now, not of those before the interruption.
    'round  9/10    90.0 s, 01:10 left',
    'round 10/10  accuracy 0.5  50.0 s',
  ]


def test_no_time_left_is_told_before_a_round_was_played(capsys):
  with progress.Progress(2, enabled=True) as shown:
    shown.begin(0)
    shown.report({'round': 0, 'accuracy': 0.1, 'evaluate_seconds': 0.25})
  assert capsys.readouterr().out == 'round 0/2  accuracy 0.1  0.2 s\n'


NAN = pytest.approx(math.nan, nan_ok=True)


def play(path, **changes):
  config = config_lib.Config.of(
    {
      'dataset': 'toys:blobs',
      'model': 'logistic',
      'num_clients': 2,
      'client_learning_rate': 0.1,
      'num_mc_samples': 2,
      'final_num_mc_samples': 2,
      'num_workers': 1,
    }
    | changes
  )
  runs_lib.Run(config, path, False, draw_plots=False).play()


@pytest.mark.parametrize('stages', [(f'{__name__}:Forget',), ()])
def test_a_model_that_forgets_is_named_once(tmp_path, caplog, stages):
  with caplog.at_level(logging.WARNING):
    play(tmp_path, variant='deterministic', num_rounds=4, server_step=stages)
  said = [r.getMessage() for r in caplog.records if 'lost' in r.getMessage()]
  assert len(said) == len(stages)
  for line in said:
    assert line.startswith(f'{tmp_path}: accuracy 0.333 after round 3, 0.')
    assert line.endswith('see train_loss in metrics.csv.')


@pytest.mark.parametrize(
  'accuracies, chance, wanted',
  [
    # Of a gain of 0.4 a quarter is 0.1: 0.2 is kept, 0.19 is not.
    (['0.1', '0.5', '', '0.2'], 0.1, None),
    (['0.1', '0.5', '', '0.19'], 0.1, (3, 0.19, 1, 0.5)),
    # The first, whatever comes after it.
    ([0.1, 0.5, 0.1, 0.6, 0.1], 0.1, (2, 0.1, 1, 0.5)),
    # Two classes, and uneven ones, of which chance is right often.
    ([0.5, 0.95, 0.55], 0.5, (2, 0.55, 1, 0.95)),
    ([0.8, 0.95, 0.81], 0.8, (2, 0.81, 1, 0.95)),
    # Nothing was gained, so nothing is lost.
    ([0.1, 0.19, 0.1], 0.1, None),
    ([], 0.1, None),
    # A model that ran away, and one that began so.
    ([0.1, 0.5, math.nan], 0.1, (2, NAN, 1, 0.5)),
    ([math.nan, 0.5, 0.5], 0.1, None),
  ],
)  # fmt: skip
def test_the_first_loss(accuracies, chance, wanted):
  rows = [{'round': str(n), 'accuracy': a} for n, a in enumerate(accuracies)]
  assert forgetting.first_loss(rows, chance) == wanted


@pytest.mark.parametrize(
  'changes, wanted',
  [
    ({'variant': 'flipout', 'flipout.initial_scale': 0.25}, 0.25),
    ({'variant': 'deterministic'}, None),
  ],
)
def test_the_scale_is_a_column(tmp_path, changes, wanted):
  play(tmp_path, num_rounds=1, **changes)
  with (tmp_path / 'metrics.csv').open(newline='') as file:
    first, last = csv.DictReader(file)
  if wanted is None:
    assert 'median_scale' not in first
  else:
    assert float(first['median_scale']) == pytest.approx(wanted)
    assert 0 < float(last['median_scale']) != float(first['median_scale'])
