"""What a call of a user's Op costs that has C code (``c_code``), and of one with ``perform`` alone.

    python benchmark/c_code_cost.py [--rounds N] [--calls N]

It runs under any Python that has a package named theano: opwise, or genuine Theano to compare with.
The Op doubles a vector of 4 numbers. The cost of an Apply is the difference of functions with 1 and
51 of them, which take turns; figures are medians.
"""

import argparse
import statistics
import time

import numpy as np

import theano
import theano.tensor as T

LENGTHS = (1, 51)

CODE = """
Py_XDECREF(%(z)s);
%(z)s = (PyArrayObject *)PyArray_EMPTY(1, PyArray_DIMS(%(x)s), NPY_FLOAT64, 0);
if (!%(z)s) %(fail)s
for (int i = 0; i < PyArray_DIMS(%(z)s)[0]; i++)
    ((double *)PyArray_DATA(%(z)s))[i] = 2 * ((double *)PyArray_DATA(%(x)s))[i];
"""


class WithPerform(theano.Op):
    """Doubles a vector in numpy."""

    __props__ = ()

    def make_node(self, x):
        return theano.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] * 2


class WithC(WithPerform):
    """Doubles a vector in C."""

    def c_code(self, node, name, inputs, outputs, sub):
        return CODE % {"x": inputs[0], "z": outputs[0], "fail": sub["fail"]}

    def c_code_cache_version(self):
        return (1,)


OPS = {"c_code": WithC(), "perform": WithPerform()}


def chain(op, length):
    """Return a function that applies an Op so often."""
    x = y = T.dvector()
    for _ in range(length):
        y = op(y)
    function = theano.function([x], y)
    function.trust_input = True
    return function


def measure(rounds, calls):
    """Return {(implementation, length): nanoseconds of a call by round}."""
    functions = {(name, n): chain(op, n) for name, op in OPS.items() for n in LENGTHS}
    samples = {key: [] for key in functions}
    value = np.ones(4)
    for _ in range(rounds):
        for key, function in functions.items():
            start = time.perf_counter()
            for _ in range(calls):
                function(value)
            samples[key].append((time.perf_counter() - start) / calls * 1e9)
    return samples


def per_apply(samples):
    """Return {implementation: nanoseconds of an Apply}."""
    few, many = LENGTHS
    medians = {key: statistics.median(values) for key, values in samples.items()}
    return {name: (medians[name, many] - medians[name, few]) / (many - few) for name in OPS}


def main(arguments=None):
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="turns (default: 15)")
    parser.add_argument("--calls", type=int, default=2000, help="calls a turn (default: 2000)")
    options = parser.parse_args(arguments)
    samples = measure(options.rounds, options.calls)
    for name, nanoseconds in per_apply(samples).items():
        call = statistics.median(samples[name, LENGTHS[0]])
        print("%-8s %8.0f ns an Apply, %8.0f ns a call with one" % (name, nanoseconds, call))


if __name__ == "__main__":
    main()
