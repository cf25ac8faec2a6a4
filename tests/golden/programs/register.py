"""The register of golden programs, and how one of them is run."""

import warnings

import numpy

from .encoding import attempt

PROGRAMS = {}

# How far a recorded and a measured number may be apart.
ULP = "ulp"
LOOSE = "loose"
# For double results that the old package computes in single precision, or by a short series, and
# for trainings that amplify roundings.
SINGLE = "single"


class Program:
    """One recorded program: its name, its function of (theano, T, np) and how it is compared."""

    def __init__(self, name, function, floatx, tolerance):
        self.name = name
        self.function = function
        self.floatx = floatx
        self.tolerance = tolerance

    def run(self, theano, on_warning="ignore", **flags):
        """Return the program's encoded results under the given theano module and its flags."""
        # Old programs make numpy and Theano warn a lot; a warning is not what is recorded here.
        with warnings.catch_warnings(), numpy.errstate(all="ignore"):
            warnings.simplefilter(on_warning)
            with theano.change_flags(floatX=self.floatx, **flags):
                return attempt(self.function, theano, theano.tensor, numpy)


def program(name, floatx="float64", tolerance=LOOSE):
    """Register the decorated function under `name`; `floatx` is the flag that it runs under."""

    def register(function):
        add_program(name, function, floatx, tolerance)
        return function

    return register


def add_program(name, function, floatx="float64", tolerance=LOOSE):
    """Register a function made from a table; raises ValueError for a name that is taken."""
    if name in PROGRAMS:
        raise ValueError(f"two golden programs are named {name}")
    PROGRAMS[name] = Program(name, function, floatx, tolerance)
