"""Programs of numpy as people write them, in numpy, opwise.jit, numba.njit and jax.jit."""
