r"""A small program to profile: it adds three vectors and doubles the sum.

    THEANO_FLAGS=optimizer_excluding=fusion:inplace,profile=True \
        python doc/tutorial/profiling_example.py

runs it and prints the profile of its function. Without ``optimizer_excluding`` the operations
become one loop, and the profile shows a single Op.
"""

import numpy as np

import theano
import theano.tensor as T

x, y, z = T.vectors("xyz")
f = theano.function([x, y, z], [(x + y + z) * 2])

rng = np.random.RandomState(0)
f(*(rng.rand(10).astype(theano.config.floatX) for _ in range(3)))
