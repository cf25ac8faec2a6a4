"""What the tests of linkers share: graphs run by one VM, and arrays laid out in every way."""

import contextlib
import itertools
import os
from collections import Counter

import numpy as np
import pytest

from opwise import FunctionGraph, OpWiseCLinker, PerformLinker
from opwise.graph.fgraph import Interface


def _link(inputs, outputs, linker, generate, mutable):
    # a copy: tests link a graph several ways
    interface = Interface(mutable=frozenset(mutable))
    fgraph = FunctionGraph(list(inputs), list(outputs), interface=interface)
    linker.generate_kernels = generate
    return linker.accept(fgraph)


@pytest.fixture
def run_with():
    """``run_with(inputs, outputs, c)``: a function from values to results, and what was linked.

    Values reach the VM as they are, without conversion or copy; results may be views of them.
    generate: whether kernels may be compiled. mutable: inputs that may be overwritten.
    """

    def make(inputs, outputs, c, generate=False, mutable=()):
        linker = _link(
            inputs, outputs, OpWiseCLinker() if c else PerformLinker(), generate, mutable
        )
        linked = linker.link()

        def run(*values):
            for container, value in zip(linked.inputs, values, strict=True):
                container.storage[0] = value
            linked.vm()
            return [container.storage[0] for container in linked.outputs]

        return run, linked

    return make


def _spread(array, axis):
    """Return a copy of which the elements along an axis are not neighbours."""
    shape = list(array.shape)
    shape[axis] *= 2
    view = np.zeros(shape, array.dtype)[
        (slice(None),) * (axis % array.ndim) + (slice(None, None, 2),)
    ]
    view[...] = array
    return view


def _backward(array):
    index = (slice(None, None, -1),) * array.ndim
    return array[index].copy()[index]


def _read_only(array):
    copy = array.copy()
    copy.flags.writeable = False
    return copy


#: name -> function from an array to one of the same shape laid out otherwise
LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "last spread": lambda a: _spread(a, -1),
    "first spread": lambda a: _spread(a, 0),
    "backward": _backward,
    "turned": lambda a: np.moveaxis(np.moveaxis(a, 0, -1).copy(), -1, 0),
    "still": lambda a: np.broadcast_to(a[:1].copy(), a.shape),
    "read-only": _read_only,
}


@pytest.fixture
def layouts():
    """``layouts(arrays)``: the same arrays in other layouts; each layout comes up for each.

    All pairs of layouts are tried of two arrays, of more each with its neighbours in the table.
    """

    def every(arrays):
        arrays = [np.asarray(a) for a in arrays]
        names = list(LAYOUTS)
        if len(arrays) <= 2:
            choices = itertools.product(names, repeat=len(arrays))
        else:
            choices = [
                [names[(k + i * step) % len(names)] for i in range(len(arrays))]
                for k in range(len(names))
                for step in (0, 1, 3)
            ]
        for choice in choices:
            yield (
                choice,
                [LAYOUTS[name](a) if a.ndim else a for name, a in zip(choice, arrays, strict=True)],
            )

    return every


@pytest.fixture
def cache(use_cache, tmp_path):
    """A cache folder of this test alone, and nothing loaded yet."""
    return use_cache(tmp_path / "cache")


@pytest.fixture
def open_files():
    """``open_files()``: how often this process has each file open."""

    def count():
        found = Counter()
        for number in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):  # the descriptor of this listing
                found[os.readlink(f"/proc/self/fd/{number}")] += 1
        return found

    return count
