"""``theano.gof.utils``: small functions on lists and dicts that programs took from there."""

from __future__ import annotations

import hashlib
from collections import Counter
from functools import cache as memoize  # noqa: F401
from functools import wraps
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import numpy as np

from opwise.graph.op import Op

add_tag_trace = Op.add_tag_trace


class object2:
    """A base class."""


MetaObject = type(object2)


class D:
    """A record of its keyword arguments."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


class Keyword:
    """A constant with a name, which may be false."""

    def __init__(self, name, nonzero=True):
        self.name, self.nonzero = name, nonzero

    def __bool__(self):
        return self.nonzero

    def __repr__(self):
        return f"<{self.name}>"


ABORT, RETRY, FAILURE = (Keyword(name, False) for name in ("ABORT", "RETRY", "FAILURE"))
ANY_TYPE, FALL_THROUGH = Keyword("ANY_TYPE"), Keyword("FALL_THROUGH")
simple_types = (int, str, float, bool, type(None), Keyword)
#: stands for an argument that is not given
undef = object()


def deprecated(filename, msg=""):
    """Return a decorator that prints ``msg`` at the first call of a function."""

    def decorate(function):
        printed = []

        @wraps(function)
        def wrapped(*args, **kwargs):
            if not printed:
                printed.append(print(f"WARNING: {filename}.{function.__name__} deprecated. {msg}"))
            return function(*args, **kwargs)

        return wrapped

    return decorate


def uniq(seq):
    """Return the distinct elements of a list, which need not be hashable, in their order."""
    found = []
    for each in seq:
        if each not in found:
            found.append(each)
    return found


def unique(x):
    """Return whether all elements differ."""
    return len({*x}) == len(x)


def difference(seq1, seq2):
    """Return the elements of the first list that are not in the second."""
    return [each for each in seq1 if each not in seq2]


def remove(predicate, coll):
    """Return the elements for which ``predicate`` is false."""
    return [each for each in coll if not predicate(each)]


def hist(coll):
    """Return {element: how often it occurs}."""
    return dict(Counter(coll))


def flatten(a):
    """Return the elements of nested lists, tuples and sets in one list."""
    if not isinstance(a, list | tuple | set):
        return [a]
    return [leaf for each in a for leaf in flatten(each)]


def to_return_values(values):
    """Return the only element of a list, or the list if it has several."""
    return values[0] if len(values) == 1 else values


def from_return_values(values):
    """Return a list or tuple itself, and any other value in a list."""
    return values if isinstance(values, list | tuple) else [values]


def toposort(prereqs_d):
    """Return the keys of {key: set of keys that come before it} in such an order."""
    order = TopologicalSorter(prereqs_d)
    try:
        found = list(order.static_order())
    except CycleError as error:
        raise Exception(f"The order has a cycle: {error.args[1]}") from None
    if len(found) != len(prereqs_d):
        lacking = [each for each in found if each not in prereqs_d]
        raise Exception(f"prereqs_d has no key for {lacking}, which others need")
    return found


def give_variables_names(variables):
    """Name the variables that have no name, or that of another one; return them all."""
    counts = Counter(v.name for v in variables)
    unnamed = [v for v in variables if not v.name or counts[v.name] > 1]
    for k, variable in enumerate(unnamed):
        variable.name = f"{variable.name or ''}_{k}"
    if not unique([str(v) for v in variables]):
        raise ValueError("Two variables still have the same name: give one of them another name.")
    return variables


def hash_from_code(msg):
    """Return the sha256 of a text or of bytes, in hexadecimal digits."""
    return hashlib.sha256(msg.encode() if isinstance(msg, str) else msg).hexdigest()


def hash_from_file(file_path):
    """Return the sha256 of a file."""
    return hash_from_code(Path(file_path).read_bytes())


def hash_from_ndarray(data):
    """Return a hash of the elements, shape, strides and dtype of an array."""
    data = np.ascontiguousarray(data)
    return hash_from_code(f"{hash_from_code(data)} {data.shape} {data.strides} {data.dtype}")


def hashtype(self):
    """Return a hash of the class of an object."""
    return hash((type(self).__name__, type(self).__module__))


def get_variable_trace_string(v):
    """Return the lines of the program that made a variable, '' if they are not known."""
    from opwise.graph.provenance import format_trace

    return (
        f"Backtrace when that variable is created:\n\n{format_trace(v.made_at)}"
        if v.made_at
        else ""
    )
