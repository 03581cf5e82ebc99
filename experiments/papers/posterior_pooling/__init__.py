"""Fischer et al. 2024: Tables 1 to 5, Figures 2 to 9, and claims.

Common deviations are listed in `docs/results/posterior_pooling.md`. Table 1's
centralized training is one client with all data and one epoch per round, so
Adam restarts each epoch. Clients do not have the server's pre-training examples
of Table 4.
"""

from experiments.papers.posterior_pooling.claims import CLAIMS
from experiments.papers.posterior_pooling.grids import PAPER
from experiments.papers.posterior_pooling.published import FIGURES, TABLES
