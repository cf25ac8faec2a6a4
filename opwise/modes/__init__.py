"""Modes: an optimizer and a linker under one name, and what runs around them."""
