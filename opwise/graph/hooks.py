"""Hooks: functions of upper layers that lower ones call. Upper layers set them when imported."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from opwise.graph.variable import Variable


def _not_set(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError(
        "opwise.compile is not loaded: import the package opwise, not only one of its modules"
    )


def _same_value(value: Any) -> Any:
    return value


def _nothing(value: Any) -> None:
    return None


def _no_threads() -> dict[str, Any]:
    return {}


def _one_thread() -> int:
    return 1


class _NoEnding:
    """What ``ending`` is before the compiled VM is loaded."""

    @staticmethod
    def watch(call: Callable[[], None]) -> None:
        return None

    @staticmethod
    def before_fork() -> None:
        return None

    after_fork = after_fork_in_child = leave = before_fork


#: (variable, values by input) -> value of the variable; set by compile.function
evaluate: Callable[[Variable, Mapping[Any, Any]], Any] = _not_set

#: (value) -> variable: a number, a list or an array as a constant; set by tensor.variable
as_variable: Callable[[Any], Variable] = _not_set

#: (tensor variable without dimensions) -> the number in it, as a scalar variable; set by
#: tensor.convert
scalar_from_tensor: Callable[[Variable], Variable] = _not_set

#: (inputs, outputs, mode=, name=, allow_input_downcast=) -> function; set by compile.function
compile_function: Callable[..., Callable[..., Any]] = _not_set

#: (function, *arguments, budget=, file=) -> Advice; set by tuning.advise
advise: Callable[..., Any] = _not_set

#: (Function, Variable, Apply or FunctionGraph) -> HTML, for notebooks; set by notebook.rich
html: Callable[[Any], str] = _not_set

#: (value) -> value: copies a device's array to the host, returns any other value as it is; set by
#: gpu.device when the first device is used
to_host: Callable[[Any], Any] = _same_value

#: (Apply) -> the positions of the inputs that it reads on the host if a device runs it, otherwise
#: None; set by gpu.placement when the first graph is placed
read_on_host: Callable[[Any], tuple[int, ...] | None] = _nothing

#: (function) -> None: keeps the arguments of the function's calls, for advice at the end of the
#: program; set by tuning.advise
remember: Callable[[Any], None] = _not_set

#: package -> modules of upper layers with rules and lowerings of its Ops: the package imports them
#: at its end, so that programs without such Ops do not
load_with: defaultdict[str, list[str]] = defaultdict(list)

#: () -> facts by name that a profile records of the threads of kernels and of BLAS; set by
#: linkers.resources
parallelism: Callable[[], dict[str, Any]] = _no_threads

#: () -> how many threads an Op may use; set by linkers.resources
threads: Callable[[], int] = _one_thread

#: (Apply, storages by variable, computed flags by variable, 'c' or 'py' or None) -> thunk; set by
#: linkers.userops
make_thunk: Callable[..., Callable[[], None]] = _not_set

#: has signals that end the process call a function first; set by linkers.opwise_c
ending: type[_NoEnding] = _NoEnding
