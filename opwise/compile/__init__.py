"""Compilation: from variables to a function that can be called. Public names are in ``opwise``."""
