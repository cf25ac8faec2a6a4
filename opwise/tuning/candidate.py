"""Candidate: a copy of a function with all that a round of calls of it starts from."""

from __future__ import annotations

import copy
from time import perf_counter

import numpy as np

from opwise.linkers import resources
from opwise.tuning.copies import fresh


class Candidate:
    """What is measured: a copy of a function that nobody else calls, and a call of it.

    args, kwargs: of each call. threads: how many kernels and BLAS may use. trust: whether arguments
    go in unchecked. note: what its maker found out that the user has to know.
    """

    trust = False
    note = ""

    def __init__(self, function, args, kwargs):
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.threads = resources.threads()
        specs = list(zip(function.maker.inputs, function.input_storage, strict=True))
        self._kept = [
            (cell.storage, cell.storage[0], spec.mutable)
            for spec, cell in specs
            if spec.value is not None
        ]
        self._updated = [cell.storage for spec, cell in specs if spec.update is not None]
        #: whether calls overwrite their arguments
        self.overwrites = any(spec.mutable and not spec.implicit for spec, _ in specs)

    def otherwise(self, **settings):
        """Return a Candidate of the same function, from the same start, with other settings."""
        new = copy.copy(self)
        new.__dict__.update(settings)
        return new

    def restart(self):
        """Put the state back to what it was at first, and make the settings this one's."""
        for storage, value, changes in self._kept:
            storage[0] = fresh(value) if changes else value
        if resources.threads() != self.threads:
            resources.use_threads(self.threads)
        self.function.trust_input = self.trust

    def results(self):
        """Return the results of one call from the start, and what it made of the state."""
        self.restart()
        args, kwargs = self.arguments()
        found = self.function(*args, **kwargs)
        if isinstance(found, dict):
            found = list(found.values())
        found = list(found) if isinstance(found, list | tuple) else [found]
        found += [storage[0] for storage in self._updated]
        return [np.array(v) if isinstance(v, np.ndarray) else v for v in found]

    def arguments(self):
        """Return the arguments of one call: copies where it overwrites them."""
        if not self.overwrites:
            return self.args, self.kwargs
        return tuple(map(fresh, self.args)), {k: fresh(v) for k, v in self.kwargs.items()}


def timer(candidate, calls):
    """Return the seconds that some calls take, from the start; a first one is not counted."""
    function, args, kwargs = candidate.function, candidate.args, candidate.kwargs
    if calls > 1:
        candidate.restart()
        first_args, first_kwargs = candidate.arguments()
        function(*first_args, **first_kwargs)
    candidate.restart()
    if candidate.overwrites:
        return _time_each(candidate, calls)
    each = range(calls)
    start = perf_counter()
    if kwargs:
        for _ in each:
            function(*args, **kwargs)
    else:
        for _ in each:
            function(*args)
    return perf_counter() - start


def _time_each(candidate, calls):
    """Return the seconds of calls that overwrite their arguments: each gets copies of its own."""
    spent = 0.0
    for _ in range(calls):
        args, kwargs = candidate.arguments()
        start = perf_counter()
        candidate.function(*args, **kwargs)
        spent += perf_counter() - start
    return spent
