"""Attacks by clients."""
