"""Measure complete programs of today in numpy, opwise.jit, numba.njit and jax.jit.

Columns with -grad leave gradients to the library; the others compute them as numpy does, by hand.
Each program and contender runs in a process of its own, and contenders take turns.
"""

from benchmark.numpy_programs.running import main

if __name__ == "__main__":
    main("benchmark.programs", str(__doc__))
