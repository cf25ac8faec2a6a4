"""What a contender does for the worker process, and the namespace that it gives to programs.

The namespace ``xp`` of a contender has, spelled as users of its library spell them:

- ``exp log sqrt sin tanh sigmoid erf`` of an array, ``dot(a, b)``, and ``sum mean max`` with
  ``axis``;
- ``argmax argmin cumsum sort`` with ``axis``, ``searchsorted(x, v)``, ``where(c, x, y)``,
  ``matmul(x, y)`` of pages of matrices, ``swapped(x)``, pages with rows for columns, and
  ``softmax_last(x)`` along the last axis;
- ``masked_sum(x, mask)``, the sum of the elements of x where a mask is true, and
  ``take_columns(x, index)``;
- ``softmax(x)`` along rows, ``layer_norm(x, gain, bias)`` of rows, and
  ``cross_entropy(scores, labels)``, the mean over rows of the negative log likelihood;
- ``take(table, index)`` for rows, and ``add_at(table, index, rows)`` and ``set_at``, the table
  with them added, or with these rows in their place;
- ``uniform(shape, dtype)`` between 0 and 1 and ``normal(shape, dtype)``, drawn anew in each call by
  the library's generator, and the same with ``legacy_`` by numpy's RandomState where it has that;
- ``cholesky(x)``, the lower factor, ``solve(a, b)``, ``solve_lower(a, b)`` for a lower triangular
  matrix, ``svd(x)``, u, s and v with u * s times v equal to x, ``eigh(x)``, and ``diagonal(x)``;
- ``csr(data, indices, indptr, shape)``, a sparse matrix, and ``sparse_dot(x, w)``, its product with
  a dense one;
- ``power_spectrum(x)``, the squared magnitudes of the Fourier transforms of rows, and
  ``filtered(x, gain)``, the rows with each frequency times its gain;
- ``doubled_in_c(x)`` and ``doubled_in_python(x)``, Ops that the user wrote in that language;
- ``scan(step, first, sequences, steps=n)``, the last states of a loop that begins with ``first``:
  ``step`` takes a row of each sequence and the states, and returns the next states; and
  ``scan_rows``, the states after each step;
- ``constant(array)``, an array of numpy, ``inverse(x)``, and ``as_dtype(x, dtype)``;
- ``value_and_grad(cost, *wrt)``, the cost at ``wrt`` and its gradients;
- ``conv(x, w, stride, pad, groups)``, the correlation of images (batch, channels, rows, columns)
  with filters, and for its result's gradient g, ``conv_by_filters(x, w, g, ...)`` and
  ``conv_by_images(x, w, g, ...)``; ``max_pool(x, size, stride)``; ``batch_norm(x, gain, bias)``
  with the moments of each channel; ``relu(x)``; ``on_maps(b)``, a number for each channel as an
  operand beside images; ``rows(x)``, a row for each image;
- ``descend(state, grads, rate)`` for the state after a step downhill.

Numpy has no ``value_and_grad``: what needs one is written for it by hand.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmark.suite.workload import Workload

EPSILON = 1e-5


class Contender:
    """A library in one way of using it. ``load`` is what imports the library.

    checkout: the folder whose ``benchmark`` and library its worker runs; None for this one.
    """

    checkout: Path | None = None

    def __init__(self, name: str, needs: tuple[str, ...] = ()):
        self.name = name
        self.needs = needs

    @property
    def worker(self) -> str:
        """The contender's name in the worker process."""
        return self.name

    # ------------------------------------------------ asked by the coordinator

    def missing(self) -> list[str]:
        """The modules that are not installed."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]

    def environment(self, cache: Path) -> dict[str, str]:
        """Variables that make the library keep what it compiles in this folder."""
        return {}

    def declines(self, workload: Workload) -> str:
        """Why the workload says nothing about this contender; empty if it does."""
        return ""

    # ------------------------------------------------ asked in the worker, in this order

    def load(self, workload: Workload) -> None:
        """Import the library and put the data where it wants them."""
        raise NotImplementedError

    def build(self) -> Callable[[], object]:
        """The callable that makes one call and returns when its outputs are there."""
        raise NotImplementedError

    def settle(self, step: Callable[[], object]) -> None:
        """Wait until later calls of what ``build`` returned are as fast as they will be."""

    def outputs(self, returned) -> list[np.ndarray]:
        """What the callable returned, as arrays of numpy."""
        return [np.array(value) for value in returned]

    def state(self) -> dict[str, np.ndarray]:
        """The state as it is now, as arrays of numpy."""
        raise NotImplementedError


def layer_norm(xp, x, gain, bias):
    """Layer normalisation, for libraries that have none."""
    centred = x - xp.mean(x, axis=1, keepdims=True)
    variance = xp.mean(centred * centred, axis=1, keepdims=True)
    return centred / xp.sqrt(variance + EPSILON) * gain + bias


def batch_norm(xp, x, gain, bias):
    """Batch normalisation, for libraries that have none."""
    axes = (0, 2, 3)
    centred = x - xp.mean(x, axis=axes, keepdims=True)
    variance = xp.mean(centred * centred, axis=axes, keepdims=True)
    unit = centred / xp.sqrt(variance + EPSILON)
    return unit * xp.on_maps(gain) + xp.on_maps(bias)


def on_maps(b):
    return b[:, None, None]


def repeated(step, first, sequences=(), steps=None):
    """Yield the states after each step; for libraries whose loops are those of Python."""
    states = first
    for rows in zip(*sequences, strict=True) if sequences else ((),) * steps:
        states = step(*rows, *states)
        yield states


def scan(step, first, sequences=(), steps=None):
    """The last of the states that ``repeated`` yields."""
    for states in repeated(step, first, sequences, steps):
        last = states
    return last


def scan_rows(stack, step, first, sequences=(), steps=None):
    """All of the states that ``repeated`` yields. stack: makes one array of several."""
    rows = zip(*repeated(step, first, sequences, steps), strict=True)
    return tuple(stack(states) for states in rows)


def descend(state: dict, grads, rate: float) -> dict:
    """New values; for libraries that do not overwrite."""
    return {
        name: value - rate * grad for (name, value), grad in zip(state.items(), grads, strict=True)
    }
