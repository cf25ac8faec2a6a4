"""Candidate: a copy of a function, with the state and settings that its calls start from."""

from __future__ import annotations

import copy
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from opwise.linkers import resources
from opwise.tuning.copies import fresh

if TYPE_CHECKING:
    from opwise.compile.executable import Function
    from opwise.graph.type import Type


class Candidate:
    """A copy of a function that nobody else calls, and the call of it that is measured."""

    #: whether arguments are passed unchecked
    trust = False
    #: what the user has to know about this copy, or ""
    note = ""

    def __init__(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function = function
        #: the arguments of each call
        self.args = args
        #: the keyword arguments of each call
        self.kwargs = kwargs
        #: how many threads kernels and BLAS may use
        self.threads = resources.threads()
        specs = list(zip(function.maker.inputs, function.input_storage, strict=True))
        self._kept = [
            (container.storage, container.storage[0], spec.mutable)
            for spec, container in specs
            if spec.value is not None
        ]
        self._updated = [container.storage for spec, container in specs if spec.update is not None]
        #: the names of what ``results`` returns, for messages
        self.names = _names(function)
        #: the Type of each of them
        self.types = _types(function)
        #: whether calls overwrite their arguments
        self.overwrites = any(spec.mutable and not spec.implicit for spec, _ in specs)

    def with_settings(self, **settings: Any) -> Candidate:
        """Return a Candidate of the same function and state, with other attributes."""
        new = copy.copy(self)
        new.__dict__.update(settings)
        return new

    def restart(self) -> None:
        """Restore the state that calls start from, and apply the settings."""
        for storage, value, changes in self._kept:
            storage[0] = fresh(value) if changes else value
        if resources.threads() != self.threads:
            resources.use_threads(self.threads)
        self.function.trust_input = self.trust

    def results(self) -> list[Any]:
        """Return the results of one call from the start, then the new values of the state."""
        self.restart()
        args, kwargs = self.arguments()
        found = self.function(*args, **kwargs)
        if isinstance(found, dict):
            found = list(found.values())
        found = list(found) if isinstance(found, list | tuple) else [found]
        found += [storage[0] for storage in self._updated]
        # later calls may change objects in place, such as states of random numbers
        return [np.array(v) if isinstance(v, np.ndarray) else fresh(v) for v in found]

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of one call: copies if the call overwrites them."""
        if not self.overwrites:
            return self.args, self.kwargs
        return tuple(map(fresh, self.args)), {k: fresh(v) for k, v in self.kwargs.items()}


def _names(function: Function) -> list[str]:
    """Return a name for each output of a function, and for each value that it updates."""
    construction = function.maker.construction
    outputs = enumerate(out.variable.name for out in construction.outputs)
    updated = (spec.variable for spec in construction.inputs if spec.update is not None)
    return [
        *(f"output {name or k}" for k, name in outputs),
        *(f"the update of {variable}" for variable in updated),
    ]


def _types(function: Function) -> list[Type]:
    """Return the Type of each output of a function, and of each value that it updates."""
    construction = function.maker.construction
    updated = (spec.variable for spec in construction.inputs if spec.update is not None)
    return [v.type for v in (*(out.variable for out in construction.outputs), *updated)]


def timer(candidate: Candidate, calls: int) -> float:
    """Return the seconds that some calls take, from the start, after an untimed first call."""
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


def _time_each(candidate: Candidate, calls: int) -> float:
    """Return the seconds of calls that overwrite their arguments: each gets its own copies."""
    spent = 0.0
    for _ in range(calls):
        args, kwargs = candidate.arguments()
        start = perf_counter()
        candidate.function(*args, **kwargs)
        spent += perf_counter() - start
    return spent
