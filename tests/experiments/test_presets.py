"""Every preset can be run: what is behind it is a config, and its pieces."""

import pathlib

import pytest

from bfl_tf import federation
from bfl_tf.config.config import Config
from bfl_tf.federation import evaluation
from experiments.papers import (
  board,
  fedbe,
  fl_swag,
  noniid_techniques,
  posterior_pooling,
)

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
def test_a_preset_is_a_config(path):
  Config.from_flagfile(path)


def test_the_defaults_learn_the_smallest_set():
  """Ten clients of 11 or 12 examples, a step a round."""
  config = Config(dataset='wine', validation_split=0.2, num_workers=1)
  experiment = federation.Experiment.build(config)
  played = federation.initial_state(experiment)
  for _ in range(config.num_rounds):
    played = federation.federated_round(experiment, played.state)
  scores = evaluation.evaluate(experiment, played, last=True).scores
  # Of 28 examples; at a tenth of the rate it was 15 of them.
  assert scores['validation_accuracy'] > 0.9


@pytest.mark.parametrize(('paper', 'name'), _BEHIND)
def test_what_flags_behind_a_preset_make_is_built(paper, name):
  behind, preset = paper.flags(name), paper.preset
  # At smoke size, since the data set may not be here.
  small = {**preset, **behind, **paper.scales['smoke']}
  small |= {'augment': False, 'train_split': 'train'}
  # Fewer digits than images that a server holds back.
  small['num_server_examples'] = min(100, small.get('num_server_examples', 0))
  federation.Experiment.build(Config.of(small), _BUILT)
