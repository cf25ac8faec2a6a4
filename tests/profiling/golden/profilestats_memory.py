"""Add two numbers once. What it is profiled with stands in THEANO_FLAGS."""

import theano
import theano.tensor as T

x, y = T.dscalars("x", "y")
f = theano.function([x, y], x + y, name="Add")
print(f(2, 3))
