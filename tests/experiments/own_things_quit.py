"""A user module that exits at its import."""

import sys

sys.exit(0)
