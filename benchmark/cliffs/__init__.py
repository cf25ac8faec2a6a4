"""Searches for programs that take longer than the hardware needs, or than numpy."""
