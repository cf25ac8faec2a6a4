"""The version of opwise."""

__version__ = "0.1.0"
