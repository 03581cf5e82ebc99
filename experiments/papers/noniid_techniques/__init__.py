"""Ozdayi et al. 2020 (techniques for non-IID data): tables, figure, claims.

Common deviations are listed in `docs/results/noniid_techniques.md`. Centralized
training is one client with all data and one epoch per round, so momentum
restarts each epoch.
"""

from experiments.papers.noniid_techniques.claims import CLAIMS
from experiments.papers.noniid_techniques.figures import FIGURES
from experiments.papers.noniid_techniques.published import TABLES
from experiments.papers.noniid_techniques.settings import PAPER
