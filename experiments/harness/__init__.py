"""Cells, tables, figures and claims for the reproduction of papers."""
