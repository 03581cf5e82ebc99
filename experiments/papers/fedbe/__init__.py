"""Chen & Chao 2021 (FedBE): its tables, figures and claims.

Common deviations are listed in `docs/results/fedbe.md`. Centralized training is
one client with all data and one epoch per round, so momentum restarts each
epoch.
"""

from experiments.papers.fedbe.claims import CLAIMS
from experiments.papers.fedbe.figures import FIGURES
from experiments.papers.fedbe.published import TABLES
from experiments.papers.fedbe.settings import PAPER
