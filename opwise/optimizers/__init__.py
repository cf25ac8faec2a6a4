"""Rewrites: what turns the graph that a user wrote into the graph that runs."""
