"""What the cells are read by: on validation, and on the test examples."""

from experiments.artifacts.priors import grids
from experiments.harness import cells, tables

ECE = cells.Measure('ECE (%)', cells.final('ece'), factor=100, digits=1)
NLL = cells.Measure('NLL (nats)', cells.final('nll'), digits=3)
ACCURACY = cells.Measure('Accuracy (%)', cells.final('accuracy'), factor=100)


def _table(name, title, grid, measures, note):
  smoke = 'A small network for one round: only that it runs.'
  notes = {**dict.fromkeys(cells.SCALES, note), 'smoke': smoke}
  return tables.Table(
    grids.PAPER, name, title, grid, measures, grids.SEEDS, notes
  )


TABLES = (
  _table(
    'choosing',
    'the prior on validation examples, Dirichlet 0.5',
    grids.CHOOSING,
    (NLL, ECE),
    'A fifth of the training digits held out.',
  ),
  _table(
    'scores',
    'the prior on test examples',
    grids.SCORES,
    (ACCURACY, NLL, ECE),
    'Ten clients on digits, 20 rounds of 5 epochs.',
  ),
)
