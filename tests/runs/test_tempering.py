"""The temperature that a run chooses: from validation examples, once."""

import fake
import numpy as np
import pytest

from bfl_tf import runs as runs_lib
from bfl_tf.federation import loop
from bfl_tf.runs import groups, tempering

CONFIG = fake.CONFIG.replace(
  variant='flipout',
  validation_split=0.2,
  settings={'flipout.choose_temperature': 2},
)


def _play(path, config):
  """What is chosen needs a training: nothing is faked."""
  runs_lib.Run(config, path, False, fake.BUILT, draw_plots=False).play()


@pytest.fixture(scope='module')
def never(tmp_path_factory):
  path = tmp_path_factory.mktemp('never') / 'run'
  _play(path, CONFIG)
  return path


def test_the_highest_that_is_not_worse():
  noise = np.random.default_rng(0).normal(0, 1, 400)
  losses = {1.0: noise + 0.5, 0.1: noise + 0.001, 0.01: noise, 0.001: noise}
  losses[0.1][::2] += 0.1
  losses[0.1][1::2] -= 0.1
  assert tempering.highest_near_best(losses) == 0.1
  losses[0.1] += 0.05
  assert tempering.highest_near_best(losses) == 0.01


def test_it_is_what_the_run_at_that_temperature_has(never, tmp_path):
  chosen = runs_lib.read_config(never).get('flipout.temperature')
  settings = {'flipout.temperature': chosen, 'flipout.choose_temperature': 0}
  _play(tmp_path, CONFIG.replace(settings=settings))
  assert fake.outcome(tmp_path) == fake.outcome(never)
  with np.load(never / 'temperature.npz') as losses:
    assert {'1.0', '0.1', '0.0001', str(chosen)} <= {*losses.files}


# In the second short run, in the last, and behind them.
@pytest.mark.parametrize('call', [3, 12, 14])
def test_stopped_anywhere(never, tmp_path, call):
  where = (loop, 'federated_round', call)
  fake.stopped(tmp_path, *where, play=_play, config=CONFIG)
  _play(tmp_path, CONFIG)
  assert fake.outcome(tmp_path) == fake.outcome(never)
  ours, theirs = map(runs_lib.read_config, (tmp_path, never))
  assert ours == theirs


def test_seeds_that_chose_otherwise_are_one_setting(never, tmp_path):
  _play(tmp_path, CONFIG.replace(seed=1))
  assert len(groups.grouped([never, tmp_path])) == 1


def test_refused_without_validation_examples(tmp_path):
  with pytest.raises(ValueError, match='--validation_split'):
    _play(tmp_path / 'run', CONFIG.replace(validation_split=0.0))
  assert not (tmp_path / 'run').exists()
