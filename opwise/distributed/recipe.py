"""Recipes: what travels to a worker of a compiled function, once, and the values that it keeps.

A Recipe is the graph as written, without values of shared variables. Values travel with each use
of the function, as they are then, so a worker never computes with older ones.
"""

from __future__ import annotations

import copy
import hashlib
import io
import os
import pickle
import uuid
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NoReturn

import cloudpickle
from dask.base import tokenize

from opwise.compile.executable import Function
from opwise.compile.io import In
from opwise.compile.maker import rebuild
from opwise.config import config
from opwise.graph import provenance, traversal
from opwise.graph.apply import Apply
from opwise.graph.fromfunction import FromFunctionOp
from opwise.graph.variable import Variable
from opwise.linkers.storage import Container

#: tells this process from others, on any computer
_process = uuid.uuid4().hex
#: flags that each worker chooses for itself, as do their sections, which end with a dot
_OWN_FLAGS = (
    "threads", "recycle_bytes", "cxx", "gcc.", "compiledir_bytes", "cache_graphs", "mode", "linker",
    "optimizer", "profile", "print_global_stats", "profiling.", "tuning.", "ProfileMode.",
)  # fmt: skip


def this_process() -> str:
    """Return a text that no other process returns, after a fork neither."""
    return f"{_process}-{os.getpid()}"


@dataclass(frozen=True)
class Recipe:
    """A compiled function without the values that it keeps."""

    #: the name of the function
    name: str
    #: the pickle that ``build`` reads
    data: bytes
    #: flags that the program has set, as (name, value) pairs: it is compiled under them
    flags: tuple[tuple[str, Any], ...]
    #: equal for recipes that make the same function
    key: str
    #: the process that made it
    process: str

    def __dask_tokenize__(self) -> tuple[str, str]:
        return "opwise recipe", self.key

    def build(self, profile: Any = None) -> Function:
        """Compile the function. profile: the ProfileStats to record its calls in.

        The values that it keeps are missing.
        """
        try:
            arguments = _Reader(io.BytesIO(self.data)).load()
        except (ImportError, AttributeError) as error:
            raise type(error)(
                f"The worker cannot load the function {self.name}: {error}. The modules that its "
                "Ops come from must be installed on every worker; client.upload_file sends one."
            ) from error
        return rebuild(*(*arguments, profile))


@dataclass(frozen=True)
class Values:
    """The values that a function keeps between calls, as they were at some moment."""

    #: equal for equal values
    token: str
    #: (index of an input, value) pairs
    values: tuple[tuple[int, Any], ...]

    def __dask_tokenize__(self) -> tuple[str, str]:
        return "opwise values", self.token


#: {function: its Recipe}; a function never changes what it computes
_recipes: weakref.WeakKeyDictionary[Function, Recipe] = weakref.WeakKeyDictionary()


def recipe_of(function: Any, what: str) -> Recipe:
    """Return the Recipe of a compiled function.

    what: the caller, for errors. Raises TypeError for anything but a compiled function and for one
    that cannot be pickled, and ValueError for one with updates or random streams.
    """
    check(function, what)
    found = _recipes.get(function)
    flags = _flags()
    trusting = function.trust_input
    if found is None or found.flags != flags or found.key != _key(found.data, flags, trusting):
        name = function.name or "function"
        data = _pickled(function)
        found = Recipe(name, data, flags, _key(data, flags, trusting), this_process())
        _recipes[function] = found
    return found


def _key(data: bytes, flags: tuple[tuple[str, Any], ...], trusting: bool) -> str:
    return hashlib.sha256(data + repr((flags, trusting)).encode()).hexdigest()


def _flags() -> tuple[tuple[str, Any], ...]:
    """Return the flags that the program has set and that can change what a function computes."""
    return tuple(
        (flag.fullname, flag.__get__())
        for flag in config.chosen()
        if flag.source == "code" and flag.allow_override
        if not any(
            flag.fullname.startswith(own) if own.endswith(".") else flag.fullname == own
            for own in _OWN_FLAGS
        )
    )


# --- values ---------------------------------------------------------------------------------------


def kept(function: Function) -> list[tuple[int, Container]]:
    """Return (index, container) of the inputs that keep a value: shared variables and defaults."""
    return [
        (i, container)
        for i, (spec, container) in enumerate(
            zip(function.construction.inputs, function.input_storage, strict=True)
        )
        if spec.value is not None
    ]


def values_of(function: Function, token: str | None = None) -> Values | None:
    """Return copies of the values that a function keeps now; None if it keeps none.

    token: identifies them (default: a hash of them).
    """
    containers = kept(function)
    if not containers:
        return None
    with ExitStack() as claims:
        for _, container in containers:
            claims.enter_context(container.reading())
        values = tuple((i, copy.deepcopy(container.data)) for i, container in containers)
    return Values(tokenize(values) if token is None else token, values)


# --- what cannot travel ---------------------------------------------------------------------------


def check(function: Any, what: str) -> None:
    """Raise unless a worker can compute the function; see ``recipe_of``."""
    if not isinstance(function, Function):
        made = "a compiled function: opwise.function([x], y)"
        if isinstance(function, Variable):
            raise TypeError(
                f"{what} takes {made}; {function} is a variable that is not compiled yet."
                f"{provenance.created_at(function.made_at)}"
            )
        raise TypeError(f"{what} takes {made}, not {function!r}.")
    for spec in function.construction.inputs:
        if spec.update is not None:
            _refuse_update(function, spec, what)


def _refuse_update(function: Function, spec: In, what: str) -> NoReturn:
    var: Any = spec.variable
    name = function.name or "The function"
    if getattr(var.tag, "is_rng", False):
        raise ValueError(
            f"{what}: {name} draws random numbers from a stream, whose state changes with every "
            "call; workers would all draw the same. Draw the numbers with dask.array.random and "
            f"pass them as an argument.{_where(_drawn(function, var))}"
        )
    raise ValueError(
        f"{what}: {name} updates {spec.name or var} with every call, but workers keep no state: "
        "the result would depend on which worker runs what. Compile it without updates; "
        "opwise.distributed.DataParallel applies updates once for all chunks."
        f"{_where(spec.update) or provenance.created_at(var.made_at)}"
    )


def _where(var: Any) -> str:
    trace = provenance.format_trace(var.made_at) if var is not None else ""
    return f"\nIt was made at:\n{trace}" if trace else ""


def _drawn(function: Function, state: Any) -> Any:
    """Return a variable that the user drew from the state of a stream."""
    outputs = [out.variable for out in function.outputs]
    for var in traversal.ancestors(outputs):
        if var.owner is not None and any(v is state for v in var.owner.inputs):
            return var
    return state


# --- pickles --------------------------------------------------------------------------------------


class _Writer(cloudpickle.Pickler):
    """Pickles the arguments of ``rebuild``, without the values in some storages.

    Classes and functions of the program itself are written as they are, since other processes
    cannot import them.
    """

    def __init__(self, file: io.BytesIO, storages: Sequence[list[Any]]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._storages = {id(storage): i for i, storage in enumerate(storages)}

    def persistent_id(self, obj: Any) -> int | None:
        return self._storages.get(id(obj)) if type(obj) is list else None

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is FromFunctionOp and obj._fn.__module__ == "__main__":
            infer_shape = vars(obj).get("infer_shape")
            return FromFunctionOp, (obj._fn, obj.itypes, obj.otypes, infer_shape)
        return super().reducer_override(obj)


class _Reader(pickle.Unpickler):
    """Reads what ``_Writer`` wrote; the storages have no value."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self._storages: dict[int, list[Any]] = {}

    def persistent_load(self, pid: Any) -> list[Any]:
        return self._storages.setdefault(pid, [None])


def _pickled(function: Function) -> bytes:
    _, arguments = function.__reduce__()
    storages = [container.storage for _, container in kept(function)]
    try:
        return _dumps(arguments, storages)
    except Exception as error:  # whatever the class of a user raises
        raise _unpicklable(function, error) from error


def _dumps(value: Any, storages: Sequence[list[Any]] = ()) -> bytes:
    file = io.BytesIO()
    _Writer(file, storages).dump(value)
    return file.getvalue()


def _unpicklable(function: Function, error: Exception) -> TypeError:
    """Return the error for a function that cannot be pickled, which names the Op at fault."""
    name = function.name or "The function"
    for node in _applys(function):
        try:
            _dumps(node.op)
        except Exception as refusal:  # as above
            return TypeError(
                f"{name} cannot be sent to workers, because its Op {provenance.text_of(node.op)} "
                f"cannot be pickled: {refusal}. Leave open files, locks and the like out of its "
                f"__getstate__.{provenance.made_by(node)}"
            )
    return TypeError(f"{name} cannot be sent to workers, because it cannot be pickled: {error}")


def _applys(function: Function) -> Iterator[Apply]:
    construction = function.construction
    outputs = [out.variable for out in construction.outputs]
    givens = [new for _, new in construction.arguments["givens"] if isinstance(new, Variable)]
    seen = set()
    for var in traversal.ancestors(outputs + givens):
        if var.owner is not None and var.owner not in seen:
            seen.add(var.owner)
            yield var.owner
