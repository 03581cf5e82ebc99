"""Chen & Chao 2021 (FedBE): its tables, figures and claims.

Deviations that hold for all of them: `docs/results/fedbe.md`. Centralized
training is one client with all the data and one epoch a round, so momentum
starts afresh each epoch.
"""

from experiments.papers.fedbe.claims import CLAIMS
from experiments.papers.fedbe.figures import FIGURES
from experiments.papers.fedbe.published import TABLES
from experiments.papers.fedbe.settings import PAPER
