"""Scalars: their types, the table of scalar operations, and Composite, which fuses several."""
