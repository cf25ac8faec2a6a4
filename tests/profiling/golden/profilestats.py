"""Add three vectors and double the sum, once. What it is profiled with stands in THEANO_FLAGS."""

import numpy as np

import theano
import theano.tensor as T

x, y, z = T.vectors("x", "y", "z")
f = theano.function([x, y, z], [(x + y + z) * 2])
values = np.random.rand(3, 10).astype(theano.config.floatX)
f(*values)
