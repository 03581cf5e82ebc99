"""The version of the package, once."""

__version__ = '0.5.0'
