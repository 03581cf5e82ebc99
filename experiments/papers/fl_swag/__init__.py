"""Makni 2022 (FL-SWAG): tables, figures and claims of sections 7 and 8.

The paper gives no rates, rank or period, and epochs for section 8.3 alone:
`configs/fl_swag.flags` says ours. Of one run come FL-SWAG, BayAvg, wBayAvg and
each client alone.
"""

from experiments.papers.fl_swag.claims import CLAIMS
from experiments.papers.fl_swag.figures import FIGURES
from experiments.papers.fl_swag.grids import PAPER
from experiments.papers.fl_swag.published import TABLES
