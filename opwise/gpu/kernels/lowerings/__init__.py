"""Lowerings of Applys to kernels: from an Apply to an Implementation, or why there is none."""
