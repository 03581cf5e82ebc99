"""Samplers of the true posterior, as a reference for approximations."""
