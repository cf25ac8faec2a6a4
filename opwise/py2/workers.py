"""Workers that other libraries start, as joblib does by loky: they convert modules, too.

cloudpickle writes the functions of a main program with the variables that they use. Where they are
read, they get the builtins of converted programs.
"""

from __future__ import annotations

import functools
import importlib
import types
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from typing import Any

from opwise.py2 import builtin


class _Installer:
    """Installs the import hook in the process that reads its pickle."""

    def __reduce__(self) -> Any:
        return install, ()


def install() -> None:
    """Convert modules in this process as in the one that started it."""
    importlib.import_module("opwise.py2.hook").install_as_parent()


def _patch_loky(module: Any) -> None:
    """Have workers of loky, which do not import the main program, install the hook."""
    get = module.get_preparation_data

    @functools.wraps(get)
    def get_preparation_data(*args: Any, **options: Any) -> Any:
        return {"opwise.py2": _Installer(), **get(*args, **options)}

    module.get_preparation_data = get_preparation_data


def _patch_cloudpickle(module: Any) -> None:
    """Have functions that are pickled with their code keep their builtins."""
    reduce = module.Pickler._dynamic_function_reduce

    @functools.wraps(reduce)
    def dynamic_function_reduce(self: Any, function: Any) -> Any:
        make, args, *parts, set_state = reduce(self, function)
        for python, names in builtin.BUILTINS.items():
            if function.__builtins__ is names:
                setter = functools.partial(set_function_state, set_state)
                return make_function, (python, make, args), *parts, setter
        return make, args, *parts, set_state

    module.Pickler._dynamic_function_reduce = dynamic_function_reduce


def make_function(python: int, make: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return the function ``make(*args)`` with the builtins of converted programs.

    python: see ``convert.compiled``.
    """
    made = make(*args)
    made.__globals__["__builtins__"] = builtin.BUILTINS[python]
    return types.FunctionType(
        made.__code__, made.__globals__, made.__name__, made.__defaults__, made.__closure__
    )


def set_function_state(set_state: Callable[..., Any], function: Any, state: Any) -> None:
    """Call ``set_state(function, state)``; functions inside it get its builtins."""
    set_state(function, state)
    function.__globals__["__builtins__"] = function.__builtins__


#: the end of the name of a module -> what changes it once it is imported; libraries have copies
_PATCHES: dict[str, Callable[[Any], None]] = {
    "cloudpickle.cloudpickle": _patch_cloudpickle,
    "loky.backend.spawn": _patch_loky,
}


def watch(spec: ModuleSpec | None) -> bool:
    """Change a module of the table once it is imported by ``spec``; return whether it is one."""
    if spec is None or spec.loader is None:
        return False
    for end, patch in _PATCHES.items():
        if f".{spec.name}".endswith(f".{end}"):
            loader: Any = spec.loader
            loader.exec_module = functools.partial(_execute, loader.exec_module, patch)
            return True
    return False


def _execute(execute: Callable[[Any], None], patch: Callable[[Any], None], module: Any) -> None:
    execute(module)
    patch(module)
