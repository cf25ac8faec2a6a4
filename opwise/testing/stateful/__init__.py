"""Random lives of functions: programs with a numpy reference, and what programs do to a function.

``python -m opwise.testing.stateful`` searches for faults. ``opwise.testing.fuzz`` compares the
configurations of a graph; here a function is called with other arguments and layouts, copied,
pickled, called from threads, made to fail, and compiled again in a second process.
"""
