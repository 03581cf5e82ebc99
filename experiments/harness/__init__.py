"""Cells, tables, figures and claims: what reproduces a paper, as data."""
