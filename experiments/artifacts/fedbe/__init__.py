"""Chen & Chao 2021 (FedBE): its tables, figures and claims.

Deviations that hold for all of them: `docs/results.md`. Centralized training is
one client with all the data and one epoch a round, so momentum starts afresh
each epoch.
"""

from experiments.artifacts.fedbe.claims import CLAIMS
from experiments.artifacts.fedbe.figures import FIGURES
from experiments.artifacts.fedbe.grids import PAPER
from experiments.artifacts.fedbe.published import TABLES

__all__ = ['CLAIMS', 'FIGURES', 'PAPER', 'TABLES']
