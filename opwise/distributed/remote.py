"""What runs on a worker: functions compiled there once, their calls, and reports of their profiles.

A worker keeps the functions that it compiled. Each call first puts the values in that came with
it. What was recorded is sent to the scheduler before the result of the task is.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import threading
import time
import uuid
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import distributed
import numpy as np

from opwise.compile.executable import Function
from opwise.config import change_flags, config
from opwise.distributed.recipe import Recipe, Values, this_process
from opwise.profiling.stats import ProfileStats

#: the name of the messages with profiles
OPERATION = "opwise-profile"
#: how many compiled functions a worker keeps, those used last
KEPT = 128
#: the share of a worker's time that reports take at most, where an interval limits them
_SHARE = 0.05
_numbers = itertools.count()


@dataclass(eq=False)
class Compiled:
    """A function compiled on a worker."""

    function: Function
    #: records its calls; None without a Profiler
    stats: ProfileStats | None
    #: held during calls: the values belong to one call at a time
    lock: threading.RLock = field(default_factory=threading.RLock)
    #: token of the values that are in it
    token: str | None = None
    #: tells it from everything else that any worker has compiled
    number: str = field(default_factory=lambda: f"{uuid.uuid4().hex}-{next(_numbers)}")
    #: number of its calls
    calls: int = 0

    def __post_init__(self) -> None:
        inputs = self.function.construction.inputs
        #: whether calls may overwrite an argument, and whether they may return memory that the
        #: next call uses
        self.overwrites = any(s.mutable and not s.shared and not s.implicit for s in inputs)
        self.lends = any(out.borrow for out in self.function.outputs)
        #: whether calls may leave other values behind than those that were put in
        self.forgets = any(not required for required, *_ in self.function.defaults)

    def call(self, values: Values | None, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Return what the function returns for arguments, with these kept values."""
        prepare = _copied if self.overwrites else aligned
        args = [prepare(arg) for arg in args]
        kwargs = {name: prepare(arg) for name, arg in kwargs.items()}
        with self.lock:
            if values is not None and values.token != self.token:
                self.token = None
                for i, value in values.values:
                    self.function.input_storage[i].storage[0] = aligned(value)
                self.token = values.token
            try:
                result = self.function(*args, **kwargs)
            finally:
                self.calls += 1
                if self.forgets:
                    self.token = None
            return _all_copied(result) if self.lends else result

    def snapshot(self, calls: int, timeout: float) -> tuple[str, int, str] | None:
        """Return (number of the function, number of its calls, profile as JSON).

        None if it has no more than so many calls, or if one of them does not end within so many
        seconds.
        """
        if self.stats is None or not self.lock.acquire(timeout=timeout):
            return None
        try:
            if self.calls <= calls:
                return None
            return self.number, self.calls, self.stats.profile().to_json()
        finally:
            self.lock.release()


class Reports:
    """Where a worker sends its profiles to, for one Profiler.

    name: of the Profiler. interval: the least number of seconds between two reports.
    """

    def __init__(self, worker: Any, name: str, interval: float) -> None:
        self.worker = worker
        self.name = name
        self.interval = interval
        #: {function that reports here: number of its calls in the last report}
        self.functions: dict[Compiled, int] = {}
        self._next = 0.0

    def after_call(self) -> None:
        """Send what is new, unless the last report was sent a short time ago."""
        start = time.monotonic()
        if start >= self._next:
            self.send()
            if self.interval:
                end = time.monotonic()
                self._next = end + max(self.interval, (end - start) / _SHARE)

    def send(self) -> None:
        """Send what is new to the scheduler.

        The stream to it keeps the order: this arrives before the result of the task that runs now.
        """
        for number, calls, text in self.collect_new():
            message = {
                "op": OPERATION, "name": self.name, "number": number, "calls": calls, "text": text,
            }  # fmt: skip
            # the stream belongs to the thread of the event loop
            self.worker.loop.add_callback(self.worker.batched_send, message)

    def collect_new(self) -> list[tuple[str, int, str]]:
        """Return the snapshots of the functions with calls since the last report."""
        found = []
        for compiled, calls in list(self.functions.items()):
            new = compiled.snapshot(calls, timeout=0.0)
            if new is not None:
                self.functions[compiled] = new[1]
                found.append(new)
        return found

    def everything(self) -> list[tuple[str, int, str]]:
        """Return the snapshots of all functions, and send those that are new.

        The scheduler gets them too, so that they outlive the worker.
        """
        self.send()
        found = (compiled.snapshot(0, _PATIENCE) for compiled in list(self.functions))
        return [each for each in found if each is not None]


class _Process:
    """Stands for the process where no worker runs the task, as under the threaded scheduler."""


class _Functions:
    """The functions that one worker has compiled."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        #: by (key of the recipe, whether calls are recorded), those used last at the end
        self.compiled: OrderedDict[tuple[str, bool], Compiled] = OrderedDict()
        self.reports: dict[str, Reports] = {}
        #: how many functions were compiled
        self.compilations = 0

    def find(self, recipe: Recipe) -> Compiled:
        """Return a function, compiled now if the worker has not done so."""
        with self.lock:
            key = recipe.key, bool(self.reports)
            found = self.compiled.get(key)
            if found is None:
                found = self.compiled[key] = self._compile(recipe)
                while len(self.compiled) > KEPT:
                    self._forget(self.compiled.popitem(last=False)[1])
            self.compiled.move_to_end(key)
            return found

    def _compile(self, recipe: Recipe) -> Compiled:
        self.compilations += 1
        _use_one_thread(recipe)
        stats = None
        with change_flags(dict(recipe.flags)):
            if self.reports:
                stats = ProfileStats(atexit_print=False, message=recipe.name)
            compiled = Compiled(recipe.build(stats), stats)
        for reports in self.reports.values():
            reports.functions[compiled] = 0
        return compiled

    def _forget(self, compiled: Compiled) -> None:
        """Report the last calls of a function that is no longer kept."""
        for reports in self.reports.values():
            reports.send()
            if reports.functions.get(compiled) == compiled.calls:
                del reports.functions[compiled]

    def add(self, name: str, reports: Reports) -> None:
        """Record functions from now on, for one more Profiler."""
        with self.lock:
            self._drop_recorded()
            self.reports[name] = reports

    def remove(self, name: str) -> None:
        """Record no longer for a Profiler."""
        with self.lock:
            self.reports.pop(name, None)
            self._drop_recorded()

    def _drop_recorded(self) -> None:
        """Forget functions that are recorded: their calls up to now belong to other Profilers."""
        for key in [key for key in self.compiled if key[1]]:
            del self.compiled[key]


_here = _Process()
_functions: weakref.WeakKeyDictionary[Any, _Functions] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def functions_of(worker: Any = None) -> _Functions:
    """Return the functions of a worker, or of the process for None."""
    with _lock:
        return _functions.setdefault(_here if worker is None else worker, _Functions())


def current_functions() -> _Functions:
    """Return the functions of the worker that runs the present task, else those of the process."""
    try:
        return functions_of(distributed.get_worker())
    except ValueError:  # another scheduler than that of distributed runs the task
        return functions_of()


def _use_one_thread(recipe: Recipe) -> None:
    """Let kernels use one thread, if this process is a worker and no flag says otherwise.

    Workers are one for each processor, and results must not depend on a number of threads.
    """
    if recipe.process == this_process():
        return
    flag = next((f for f in config.chosen() if f.fullname == "threads"), None)
    if flag is None:
        config.threads = 1


# --- tasks ----------------------------------------------------------------------------------------


def call(recipe: Recipe, values: Values | None, args: Sequence[Any], kwargs: Any = None) -> Any:
    """Return what a function returns for arguments; the profile of the call is reported."""
    functions = current_functions()
    compiled = functions.find(recipe)
    try:
        return compiled.call(values, args, dict(kwargs or {}))
    finally:
        for reports in list(functions.reports.values()):
            reports.after_call()


class MapBlock:
    """A task that calls a function with one block of each array.

    name: of the task; Dask reads ``__name__``. several: it returns a tuple of all outputs.
    """

    def __init__(self, name: str, several: bool) -> None:
        self.__name__ = name
        self.several = several

    def __call__(self, *blocks: Any, recipe: Recipe, values: Values | None) -> Any:
        result = call(recipe, values, blocks)
        if self.several:
            return tuple(result)
        return result[0] if isinstance(result, list) else result

    def __dask_tokenize__(self) -> tuple[str, str, bool]:
        return "opwise block", self.__name__, self.several


class MapPartition:
    """A task that calls a function with each element of a partition of one or several bags."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *parts: Any, recipe: Recipe, values: Values | None) -> list[Any]:
        return [call(recipe, values, elements) for elements in zip(*parts, strict=True)]

    def __dask_tokenize__(self) -> tuple[str, str]:
        return "opwise partition", self.__name__


def call_delayed(
    recipe: Recipe, values: Values | None, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Return what a function returns for arguments, several outputs as a tuple."""
    result = call(recipe, values, args, kwargs)
    return tuple(result) if isinstance(result, list) else result


class Pick:
    """A task that takes the k-th of several outputs. name: of the task."""

    def __init__(self, name: str, k: int) -> None:
        self.__name__ = name
        self.k = k

    def __call__(self, results: tuple[Any, ...]) -> Any:
        return results[self.k]

    def __dask_tokenize__(self) -> tuple[str, str, int]:
        return "opwise output", self.__name__, self.k


def given(value: Any) -> Any:
    """Return the argument: the value is part of the task, so it is never lost with a worker."""
    return value


def keep(arrays: Sequence[Any]) -> list[Any]:
    """Return the arrays of a chunk as functions can use them without a copy."""
    return [aligned(array) for array in arrays]


def call_chunk(recipe: Recipe, values: Values | None, chunk: Sequence[Any]) -> list[Any]:
    """Return the list of what a function returns for a chunk."""
    result = call(recipe, values, chunk)
    return result if isinstance(result, list) else [result]


def add(*parts: Sequence[Any]) -> list[Any]:
    """Return the sums of lists of arrays of the same shapes, element by element.

    Neighbours are added in pairs, then these sums, and so on; the last of an odd number goes on.
    """
    level = list(parts)
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        added = [[_sum(x, y) for x, y in zip(a, b, strict=True)] for a, b in pairs]
        level = added + level[2 * len(added) :]
    return list(level[0])


def _sum(x: Any, y: Any) -> Any:
    x, y = np.asarray(x), np.asarray(y)
    if x.shape != y.shape:
        raise ValueError(
            f"Two chunks gave results of different shapes, {x.shape} and {y.shape}, which cannot "
            "be added: sum over the rows in the function."
        )
    return np.add(x, y)


# --- parts ----------------------------------------------------------------------------------------


def aligned(value: Any) -> Any:
    """Return a value whose arrays are aligned: copies of those that are not.

    Arrays that came over the network lie anywhere in the memory of the message.
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy()
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)([aligned(part) for part in value])
    if hasattr(value, "indptr"):  # a compressed matrix of scipy
        parts = (value.data, value.indices, value.indptr)
        return value if all(part.flags.aligned for part in parts) else value.copy()
    return value


def _copied(value: Any) -> Any:
    return copy.deepcopy(value)


def _all_copied(result: Any) -> Any:
    if isinstance(result, dict):
        return {name: _copied(value) for name, value in result.items()}
    return list(map(_copied, result)) if isinstance(result, list) else _copied(result)


#: how many seconds a worker waits for a call to end when it is asked for its profile
_PATIENCE = 2.0


async def collect(name: str, dask_worker: Any = None) -> list[tuple[str, int, str]]:
    """Return the snapshots of a worker for a Profiler, for ``Client.run``."""
    reports = functions_of(dask_worker).reports.get(name)
    if reports is None:
        return []
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, reports.everything)
