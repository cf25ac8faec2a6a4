"""Complete programs of today, after well-known papers and tutorials, in numpy, opwise and JAX.

A program is a function of numpy. JAX runs the same source with ``jax.numpy`` for numpy, or the form
of it in ``in_jax.py``.
"""

from benchmark.programs import images, inference, learning, simulation

PROGRAMS = [*learning.PROGRAMS, *inference.PROGRAMS, *simulation.PROGRAMS, *images.PROGRAMS]
