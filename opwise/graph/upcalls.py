"""Upcalls: the functions of upper layers that lower ones call, by the names of their modules.

Nothing registers them. The module of a function is imported at its first call, so no lower layer
imports an upper one, and programs that never call a function do not load it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from opwise.graph.apply import Apply
    from opwise.graph.variable import Variable

#: package -> modules of upper layers with rules and lowerings of its Ops: the package imports them
#: at its end, so that programs without such Ops do not
LOADED_WITH: Mapping[str, Sequence[str]] = {
    "opwise.sparse": ("opwise.optimizers.rules.sparse", "opwise.linkers.sparsesteps"),
}


def load_with(package: str) -> None:
    """Import what ``LOADED_WITH`` names for a package."""
    for module in LOADED_WITH[package]:
        importlib.import_module(module)


@cache
def _named(where: str) -> Any:
    """Return what the string "module:name" names."""
    module, _, name = where.partition(":")
    return getattr(importlib.import_module(module), name)


# --- variables ------------------------------------------------------------------------------------


def as_variable(value: Any) -> Variable:
    """Return a number, a list or an array as a constant."""
    found: Variable = _named("opwise.tensor.variable:as_tensor_variable")(value)
    return found


def scalar_from_tensor(x: Variable) -> Variable:
    """Return the number in a tensor variable without dimensions, as a scalar variable."""
    found: Variable = _named("opwise.tensor.convert:scalar_from_tensor")(x)
    return found


# --- functions ------------------------------------------------------------------------------------


def compile_function(*args: Any, **options: Any) -> Callable[..., Any]:
    """Compile a function; the arguments are those of ``opwise.function``."""
    made: Callable[..., Any] = _named("opwise.compile.function:function")(*args, **options)
    return made


def evaluate(variable: Variable, values: Mapping[Any, Any]) -> Any:
    """Return the value of a variable for values of its inputs."""
    return _named("opwise.compile.function:evaluate")(variable, values)


def make_thunk(
    node: Apply, storage_map: Any, compute_map: Any, impl: str | None
) -> Callable[[], None]:
    """Return a function that runs an Apply on storages; impl: 'c', 'py', or None for either."""
    where = "opwise.linkers.userops.thunks:make_thunk"
    made: Callable[[], None] = _named(where)(node, storage_map, compute_map, impl)
    return made


def gradient_of_function(function: Any, **options: Any) -> Any:
    """Return the function that computes the gradient of a function of numpy."""
    return _named("opwise.tracing.transforms:grad")(function, **options)


def advise(f: Any, *args: Any, **options: Any) -> Any:
    """Return the Advice on a call of a function; see ``opwise.advise``."""
    return _named("opwise.tuning.advise:advise")(f, *args, **options)


def remembering_function() -> Any:
    """Return the class of functions that keep arguments, for advice at the end of the program."""
    return _named("opwise.tuning.remember:class_of_functions")()


def html(shown: Any) -> str:
    """Return a Function, a Variable, an Apply or a FunctionGraph as HTML, for notebooks."""
    text: str = _named("opwise.notebook.rich:html")(shown)
    return text


# --- the process ----------------------------------------------------------------------------------


def threads() -> int:
    """Return how many threads an Op may use."""
    number: int = _named("opwise.linkers.resources:threads")()
    return number


def parallelism() -> dict[str, Any]:
    """Return what a profile records of the threads of kernels and of BLAS, by name."""
    found: dict[str, Any] = _named("opwise.linkers.resources:parallelism")()
    return found


def ending() -> Any:
    """Return what has signals that end the process call a function first: the class ``Ending``."""
    return _named("opwise.linkers.opwise_c:Ending")


def watch_main_calls() -> tuple[int, int]:
    """Note how long this thread is in calls of functions.

    Return the addresses of C functions that tell it, for ``callstack.watch_calls``.
    """
    addresses: tuple[int, int] = _named("opwise.linkers.opwise_c:watch_main_calls")()
    return addresses


def clock() -> int:
    """Return nanoseconds by the clock of the times of Applys."""
    now: int = _named("opwise.linkers.opwise_c:clock")()
    return now


def to_host(value: Any) -> Any:
    """Return an array of a device as a numpy array, and any other value as it is."""
    if isinstance(value, np.ndarray):
        return value
    device = sys.modules.get("opwise.gpu.runtime.device")  # without it there are no such arrays
    return value if device is None else device.as_host(value)
