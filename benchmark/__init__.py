"""Benchmarks: programs that measure opwise as a user would run it. They are not installed."""
