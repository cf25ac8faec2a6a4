"""Profiles: what machines recorded, as plain data; sums, differences and reports made from it."""
