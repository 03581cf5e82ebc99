"""Chen & Chao 2021 (FedBE): its tables, figures and claims.

Deviations that hold for all of them: `docs/results/fedbe.md`. Centralized
training is one client with all the data and one epoch a round, so momentum
starts afresh each epoch.
"""

from experiments.artifacts.fedbe.claims import CLAIMS
from experiments.artifacts.fedbe.figures import FIGURES
from experiments.artifacts.fedbe.published import TABLES
from experiments.artifacts.fedbe.settings import PAPER
