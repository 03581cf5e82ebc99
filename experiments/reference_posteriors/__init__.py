"""Samplers of the true posterior that approximations are held against."""
