"""Prediction sets by score: our own experiment.

A random half of a finished run's final predictions calibrates sets of 90 %
coverage; the other half scores them. This is repeated 200 times. `1 - p` is LAC
with exact quantiles, whose sets may lack the most probable class.
"""

import numpy as np

from bfl_tf import metrics, run_files, seeds
from experiments.harness import cells, tables
from experiments.papers.posterior_pooling import grids

_SPLITS, _ALPHA = 200, 0.1
PAPER = cells.Paper(
  'quickstart',
  scales={'smoke': cells.SMALLEST},
  notes=dict.fromkeys(
    cells.SCALES,
    f'{_SPLITS} random halves of the test examples, each of which calibrates '
    'sets of 90 %.',
  ),
)
_SCORES = ('1 - p', *metrics.SET_SCORES)
_CELLS = {
  'digits': cells.Cell(PAPER, 'sets', {}),
  "Table 2's dropout": grids.E1['MC Dropout NWA train_size', 'iid'],
}


def _tried(directory, score):
  """Returns coverage and size of sets, `[splits, examples]`, and entropy.

  Calibration examples are NaN.
  """
  with np.load(directory / run_files.PREDICTIONS) as file:
    probs, labels = file['probs'], file['labels']
    entropy = file['normalized_entropy']
  plain = score == _SCORES[0]
  scores = 1 - probs if plain else metrics.set_scores(probs, score)
  own = scores[np.arange(labels.size), labels]
  rng = np.random.default_rng(seeds.named(0, 'sets').tolist())
  half = labels.size // 2
  rank = int(np.ceil((half + 1) * (1 - _ALPHA))) - 1
  held, sizes = np.full([2, _SPLITS, labels.size], np.nan)
  for number in range(_SPLITS):
    first, rest = np.split(rng.permutation(labels.size), [half])
    if plain:
      limit = np.sort(own[first])[rank]
    else:
      counts = metrics.score_counts(probs[first], labels[first], score)
      limit = metrics.threshold(counts, _ALPHA)
    sets = scores[rest] <= limit
    held[number, rest] = sets[np.arange(rest.size), labels[rest]]
    sizes[number, rest] = sets.sum(-1)
  return held, sizes, entropy


def _measure(label, pick, factor=1.0, digits=2):
  def read(directory, score):
    return float(pick(*_tried(directory, score)))

  return cells.Measure(label, read, factor=factor, digits=digits)


_MEASURES = (
  _measure('coverage (%)', lambda held, *_: np.nanmean(held), 100, 1),
  _measure(
    'of the fifth of largest entropy',
    lambda held, _, entropy: np.nanmean(
      held[:, entropy >= np.quantile(entropy, 0.8)]
    ),
    100,
    1,
  ),
  _measure('size', lambda _, sizes, __: np.nanmean(sizes)),
  _measure('least', lambda _, sizes, __: np.nanmin(sizes), digits=0),
  _measure(
    'empty (%)',
    lambda _, sizes, __: np.nanmean(sizes[~np.isnan(sizes)] == 0),
    100,
  ),
)
TABLES = (
  tables.Table(
    PAPER,
    'sets',
    'prediction sets of 90 %, by score',
    {
      (f'{row}, {score}', ''): cell.reading(score)
      for row, cell in _CELLS.items()
      for score in _SCORES
    },
    _MEASURES,
  ),
)
