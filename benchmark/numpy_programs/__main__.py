"""Measure programs of numpy in numpy, opwise.jit, numba.njit and jax.jit.

Each program and contender runs in a process of its own; contenders take turns. The first call and
later ones are measured apart, and results are compared with numpy's. A contender that refuses a
program, or gives another result, is shown as such.
"""

from benchmark.numpy_programs.running import main

if __name__ == "__main__":
    main("benchmark.numpy_programs.programs", str(__doc__))
