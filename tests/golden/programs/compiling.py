"""What most golden programs need: fresh variables, and calls under both compilation modes."""

import numpy as np

from .encoding import attempt

MODES = ("FAST_RUN", "FAST_COMPILE")


def tensor(T, dtype, ndim, name=None):
    """Return a fresh input variable without broadcastable dimensions."""
    return T.TensorType(dtype, (False,) * ndim)(name)


def in_modes(theano, inputs, outputs, *values):
    """Return {mode: encoded result} of the function compiled and called under each mode."""

    def call(mode):
        function = theano.function(inputs, outputs, mode=mode, on_unused_input="ignore")
        return function(*[np.array(value) for value in values])

    return {mode: attempt(call, mode) for mode in MODES}


def each_in_modes(theano, inputs, cases, values):
    """Return {label: results under both modes} for a table of functions that build outputs."""

    def case(build):
        return in_modes(theano, inputs, build(), *values)

    return {label: attempt(case, build) for label, build in cases.items()}


def descent(T, cost, parameters, rate):
    """Return the updates of one step of gradient descent."""
    slopes = T.grad(cost, parameters)
    return [(parameter, parameter - rate * slopes[k]) for k, parameter in enumerate(parameters)]


def op_names(function):
    """Return the sorted texts of the ops in a compiled function's graph."""
    return sorted(str(node.op) for node in function.maker.fgraph.toposort())
