"""Personal models of ten sites with unequal classes and shifted inputs.

Our own experiment. Half of the digits of each site are tests. Fine-tuning and
projection start from the model of FedAvg.
"""

from collections.abc import Mapping, Sequence
import pathlib
from typing import Any

from matplotlib.figure import Figure
import numpy as np

from bfl_tf.analysis import loading, personalized
from bfl_tf.plots import canvas
from bfl_tf.runs import checkpoints
from experiments.harness import cells, figures, tables

_EPOCHS = 5
_FILE = 'sites/answers.json'
_GLOBAL, _OWN = 'global model', 'personal model'
PAPER = cells.Paper(
  'personal',
  scales={'smoke': {'num_rounds': 1, 'local_epochs': 1}},
  notes=dict.fromkeys(cells.SCALES, 'Ten sites of digits, 20 rounds.'),
)


def evaluate(directory: pathlib.Path) -> dict[str, Any]:
  """Returns the accuracy of each site, by kind of model."""
  run = loading.load_run(directory)
  rows = dict(run.test.sites)

  def accuracies(models):
    return [
      float(np.mean(model.predict(x).probs.argmax(-1) == y))
      for (x, y, _), model in zip(map(run.test.take, rows.values()), models)
    ]

  trained, state = run.trained, checkpoints.restore(directory)
  # `replace` also permits a global model with untrained layers.
  whole = trained.replace(trained.weights)
  found = {_GLOBAL: accuracies([whole] * len(rows))}
  if trained.has_personal_models:
    found[_OWN] = accuracies(map(trained.personal, rows))
  elif trained.config.method == 'fedavg':
    for name, rule in (('fine-tuning', ''), ('projection', 'nwa')):
      models = {
        own.site: trained.replace(own.model)
        for own in personalized.train(run, state, _EPOCHS, rule)
      }
      found[name] = accuracies(models[site] for site in rows)
  return found


def _measure(name, summary, label):
  def read(directory, predictor):
    answers = cells.cached(directory, _FILE, evaluate)
    if name not in answers:
      raise cells.UnrecordedError(name)
    return summary(answers[name])

  return cells.Measure(label, read, factor=100, digits=1)


_METHODS = {
  'FedAvg': 'fedavg',
  'FedPer': 'fedper',
  'FedBN': 'fedbn',
  'Ditto': 'ditto',
  'pFedBayes': 'pfedbayes',
}
# Lowest NLL of 1, 0.1 and 0.01 on the sites' calibration examples, seed 0.
_CHOSEN = {'pFedBayes': {'flipout.temperature': 0.01}}
_CELLS = {
  name: cells.Cell(PAPER, method, {'method': method, **_CHOSEN.get(name, {})})
  for name, method in _METHODS.items()
}


def _draw(runs: Mapping[str, Sequence[pathlib.Path]]) -> Figure:
  """Draws the accuracy of each site, a row for each kind of model."""
  rows: dict[str, list] = {}
  for method, directories in runs.items():
    for directory in directories:
      for kind, found in cells.cached(directory, _FILE, evaluate).items():
        if kind == _GLOBAL and method != 'FedAvg':
          continue
        name = kind if method == 'FedAvg' else method
        name = 'FedAvg' if name == _GLOBAL else name
        rows.setdefault(name, []).append(found)
  axes = canvas.panel((6.4, 1.2 + 0.45 * len(rows)))
  for place, found in enumerate(reversed(rows.values())):
    means = 100 * np.mean(found, 0)
    axes.plot(means, np.full(len(means), place), 'o', mfc='none', c=canvas.BLUE)
    axes.plot(means.mean(), place, '|', ms=20, mew=2, c=canvas.VERMILION)
  axes.set_yticks(range(len(rows)), list(rows)[::-1])
  canvas.finish(axes, '', 'Accuracy on the test examples of a site (%)', '')
  return canvas.figure_of(axes)


TABLES = (
  tables.Table(
    PAPER,
    'methods',
    'personal models of ten sites',
    {(name, 'digits'): cell for name, cell in _CELLS.items()},
    (
      _measure(_GLOBAL, np.mean, 'Global model, mean (%)'),
      _measure(_OWN, np.mean, 'Personal model, mean (%)'),
      _measure(_OWN, min, 'Personal model, worst site (%)'),
      _measure('fine-tuning', np.mean, 'Fine-tuning, mean (%)'),
      _measure('projection', np.mean, 'Projection, mean (%)'),
    ),
  ),
)
FIGURES = (
  figures.Figure(
    PAPER,
    'sites',
    'accuracy of each site; a bar is the mean',
    {'digits': _CELLS},
    _draw,
    of_seeds='mean',
  ),
)
