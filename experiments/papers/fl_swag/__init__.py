"""Makni 2022 (FL-SWAG): tables, figures and claims of sections 7 and 8.

The paper gives no rates, rank or period, and epochs only for section 8.3. Our
values are in `configs/fl_swag.flags`. FL-SWAG, BayAvg, wBayAvg and each client
alone are scored in the same run.
"""

from experiments.papers.fl_swag.claims import CLAIMS
from experiments.papers.fl_swag.figures import FIGURES
from experiments.papers.fl_swag.grids import PAPER
from experiments.papers.fl_swag.published import TABLES
