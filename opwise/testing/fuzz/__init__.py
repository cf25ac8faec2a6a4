"""Random well-typed graphs, run in every configuration: a search, and strategies for Hypothesis.

Only ``strategy`` needs Hypothesis.
"""
