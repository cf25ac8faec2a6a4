"""Random well-typed graphs, run every way: strategies for Hypothesis, and a command that searches.

Hypothesis is needed here and nowhere else in opwise.
"""
