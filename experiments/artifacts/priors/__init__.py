"""How much the prior counts: an experiment of our own, `docs/prior.md`.

Settings are chosen by the table `choosing`, on validation examples; `scores`
and the claims are of the test examples.
"""

from experiments.artifacts.priors.claims import CLAIMS
from experiments.artifacts.priors.grids import PAPER
from experiments.artifacts.priors.tables import TABLES

__all__ = ['CLAIMS', 'FIGURES', 'PAPER', 'TABLES']

FIGURES = ()
