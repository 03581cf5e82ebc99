"""What the cells are read by: on validation, and on the test examples."""

from experiments.artifacts.priors import grids
from experiments.harness import cells, tables

ECE = cells.Measure('ECE (%)', cells.final('ece'), factor=100, digits=1)
NLL = cells.Measure('NLL (nats)', cells.final('nll'), digits=3)
ACCURACY = cells.Measure('Accuracy (%)', cells.final('accuracy'), factor=100)


def _table(name, title, grid, measures, rounds, seeds=grids.SEEDS):
  text = 'Ten clients on digits, {} rounds of 5 epochs.'
  notes = {
    **dict.fromkeys(cells.SCALES, text.format(20)),
    'laptop': text.format(rounds),
    'smoke': 'A small network for one round: only that it runs.',
  }
  return tables.Table(grids.PAPER, name, title, grid, measures, seeds, notes)


TABLES = (
  _table(
    'choosing',
    'the prior on validation examples, Dirichlet 0.5',
    grids.CHOOSING,
    (NLL, ECE),
    20,
    grids.FEWER,
  ),
  _table(
    'scores',
    'the prior on test examples',
    grids.SCORES,
    (ACCURACY, NLL, ECE),
    10,
  ),
)
