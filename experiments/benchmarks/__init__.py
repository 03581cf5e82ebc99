"""Benchmarks of speed and memory, one module per benchmark case."""
