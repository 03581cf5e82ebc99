"""Ozdayi et al. 2020 (techniques for non-IID data): tables, figure, claims.

Deviations that hold for all of them: `docs/results/noniid_techniques.md`.
Centralized training is one client with all the data and one epoch a round, so
momentum starts afresh each epoch.
"""

from experiments.papers.noniid_techniques.claims import CLAIMS
from experiments.papers.noniid_techniques.figures import FIGURES
from experiments.papers.noniid_techniques.published import TABLES
from experiments.papers.noniid_techniques.settings import PAPER
