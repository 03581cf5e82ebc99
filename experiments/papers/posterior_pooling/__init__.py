"""Fischer et al. 2024, whole: Tables 1 to 5, Figures 2 to 9, the claims.

Deviations that hold for all of them: `docs/results/posterior_pooling.md`.
Table 1's centralized training is one client with all the data and one epoch a
round, so Adam starts afresh each epoch. The server's pre-training examples of
Table 4 are held back from the clients.
"""

from experiments.papers.posterior_pooling.claims import CLAIMS
from experiments.papers.posterior_pooling.grids import PAPER
from experiments.papers.posterior_pooling.published import FIGURES, TABLES
