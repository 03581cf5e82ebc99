"""Tests that all presets give valid configs and experiments."""

import pathlib

import pytest
import toys

from bfl_tf import federation
from bfl_tf.config.config import Config, read_flagfile
from bfl_tf.federation import evaluation
from bfl_tf.federation.plan import Plan
from experiments.papers import (
  board,
  fedbe,
  fl_swag,
  noniid_techniques,
  posterior_pooling,
)
from experiments.papers.fl_swag import grids

_CONFIGS = pathlib.Path(__file__).parents[2] / 'configs'
_PAPERS = (board, fedbe, fl_swag, noniid_techniques, posterior_pooling)
_BEHIND = [
  pytest.param(paper.PAPER, name, id=f'{paper.PAPER.name}/{name}')
  for paper in _PAPERS
  for path in sorted((_CONFIGS / paper.PAPER.name).rglob('*.flags'))
  for name in [str(path.relative_to(_CONFIGS / paper.PAPER.name))[:-6]]
]
_BUILT: dict = {}


@pytest.mark.parametrize(
  'path', sorted(_CONFIGS.glob('*.flags')), ids=lambda path: path.stem
)
def test_every_preset_is_valid_also_with_the_flags_of_a_method(path):
  preset = read_flagfile(path)
  Config.of(preset)
  if path.stem in ('federated_admm', 'ivon', 'pfl_research'):
    for method in path.with_suffix('').iterdir():
      Plan.of(Config.of({**preset, **read_flagfile(method)}))


def test_the_default_settings_learn_the_smallest_data_set():
  """Ten clients have 11 or 12 examples and one step per round."""
  config = Config(dataset='wine', validation_split=0.2, num_workers=1)
  experiment = federation.Experiment.build(config)
  *_, last = toys.rounds(experiment, config.num_rounds)
  scores = evaluation.evaluate(experiment, last, last=True).scores
  # With a tenth of the learning rate, only 15 of 28 examples are right.
  assert scores['validation_accuracy'] > 0.9


@pytest.mark.parametrize(('paper', 'name'), _BEHIND)
def test_every_run_of_a_paper_builds_an_experiment(paper, name):
  behind, preset = paper.flags(name), paper.preset
  # Smoke scale does not need the data set.
  small = {**preset, **behind, **paper.scales['smoke']}
  small |= grids.smallest(small).get('smoke', {})
  small |= {'augment': False, 'train_split': 'train'}
  # The digits have fewer examples than the presets' server data.
  small['num_server_examples'] = min(100, small.get('num_server_examples', 0))
  federation.Experiment.build(Config.of(small), _BUILT)
