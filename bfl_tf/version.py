"""The version of the package, once."""

__version__ = '0.2.0'
