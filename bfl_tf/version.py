"""The version of the package, once."""

__version__ = '0.1.0'
