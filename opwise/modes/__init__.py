"""Modes: an optimizer and a linker under one name; some check, watch or time each Apply."""
