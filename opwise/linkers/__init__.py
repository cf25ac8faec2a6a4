"""Linkers: from an optimized graph to something that runs.

A linker is a row (``linkers.base``): the makers of thunks that it tries in order, the machine that
runs them, and the rewrites that it needs or cannot digest.
"""
