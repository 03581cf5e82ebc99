"""Scores, tables and figures of the comparisons of all methods."""
