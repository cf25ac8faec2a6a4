"""Linkers: from an optimized graph to a VM that runs it.

A linker (``linkers.base``) lowers each Apply to a step in C, or runs its ``perform``; freezes the
graph into a Program; and gives both to a VM: the compiled one, or the plain one in Python.
"""
