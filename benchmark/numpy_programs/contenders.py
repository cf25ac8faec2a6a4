"""How contenders run a program, and what memory a call of theirs takes.

Libraries are imported by the functions that use them: an interpreter needs only its contender's.
"""

from __future__ import annotations

import importlib
import tracemalloc
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from benchmark.numpy_programs.program import Program

#: ``-grad``: gradients by the library, instead of those that are written by hand
CONTENDERS = ("numpy", "opwise", "opwise-grad", "numba", "jax", "jax-grad")


def declines(program: Program, contender: str) -> bool:
    """Return whether a program has nothing for a contender."""
    if contender == "numba":
        return not program.numba
    if contender == "jax" and program.derived is not None:
        return True  # nobody writes gradients by hand there
    return contender.endswith("-grad") and program.derived is None


def load(contender: str) -> None:
    """Import what a contender needs."""
    library = contender.partition("-")[0]
    module = importlib.import_module(library)
    if library == "jax":
        module.config.update("jax_enable_x64", True)


def prepared(program: Program, contender: str, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """Return the function as a contender runs it; it may not be compiled yet."""
    library = contender.partition("-")[0]
    if library == "opwise":
        import opwise

        return opwise.jit(_source(program, contender, opwise.value_and_grad))
    if library == "numba":
        import numba

        return numba.njit(program.function)
    if library == "jax":
        import jax

        static = [i for i, a in enumerate(arguments) if isinstance(a, (int, str))]
        function = _source(program, contender, jax.value_and_grad)
        return jax.jit(in_jax(function), static_argnums=static)
    return program.function


def _source(program: Program, contender: str, value_and_grad: Any) -> Callable[..., Any]:
    if contender.endswith("-grad"):
        assert program.derived is not None
        return program.derived(value_and_grad)
    return program.function


def in_jax(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with ``jax.numpy`` for numpy, in it and in what it calls of its module.

    Functions that the module ``in_jax`` of its package has are replaced by those of this name.
    """
    import jax.numpy

    assert isinstance(function, FunctionType)
    forms = _forms(function.__module__.rpartition(".")[0] + ".in_jax")
    if function.__name__ in forms:
        return forms[function.__name__]  # type: ignore[no-any-return]
    outside = dict(function.__globals__)
    for name, value in function.__globals__.items():
        if isinstance(value, FunctionType) and value.__globals__ is function.__globals__:
            outside[name] = forms.get(name) or _with_globals(value, outside)
    outside["np"] = jax.numpy
    return _with_globals(function, outside)


def _forms(module: str) -> dict[str, Any]:
    try:
        return vars(importlib.import_module(module))
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        return {}


def _with_globals(function: FunctionType, outside: dict[str, Any]) -> FunctionType:
    cells = tuple(function.__closure__ or ())
    made = FunctionType(function.__code__, outside, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def given(contender: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return copies of arguments where the library wants them."""
    if contender.startswith("jax"):
        import jax

        return mapped(jax.device_put, copied(arguments))  # type: ignore[no-any-return]
    return copied(arguments)


def copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return mapped(np.copy, arguments)  # type: ignore[no-any-return]


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return a tree of tuples, lists and dicts with the function's value for each array."""
    if isinstance(tree, dict):
        return {name: mapped(function, each) for name, each in tree.items()}
    if isinstance(tree, (tuple, list)):
        return type(tree)(mapped(function, each) for each in tree)
    return function(tree) if isinstance(tree, np.ndarray) else tree


def waited(result: Any) -> Any:
    """Return a result that is computed."""
    for each in leaves(result):
        if hasattr(each, "block_until_ready"):
            each.block_until_ready()
    return result


def leaves(result: Any) -> Iterator[Any]:
    """The arrays and numbers in tuples, lists and dicts, in their order."""
    if isinstance(result, dict):
        for name in sorted(result):
            yield from leaves(result[name])
    elif isinstance(result, (tuple, list)):
        for each in result:
            yield from leaves(each)
    else:
        yield result


def difference(expected: Any, result: Any, tolerance: float = 1e-6) -> str:
    """Return how a result differs from the expected one by more than rounding, or ''."""
    expected, result = list(leaves(expected)), list(leaves(result))
    if len(expected) != len(result):
        return f"{len(result)} results, and not {len(expected)}"
    for k, (one, two) in enumerate(zip(expected, result, strict=True)):
        if np.shape(one) != np.shape(two):
            return f"result {k} has the shape {np.shape(two)}, and not {np.shape(one)}"
        one, two = np.asarray(one), np.asarray(two)
        if not np.allclose(two.astype(one.dtype), one, rtol=tolerance, atol=1e-8, equal_nan=True):
            most = np.max(np.abs(two.astype(one.dtype) - one)) if one.dtype != bool else 1
            return f"result {k} differs by {most:.3g} from numpy's"
    return ""


def memory(
    program: Program, contender: str, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> int | None:
    """Return the most bytes that a call holds besides arguments and results; None if unknown.

    Of numpy, the blocks of its arrays are traced; opwise counts the arrays of its Applys
    (``config.profile_memory``); XLA says what it has allotted to temporary arrays.
    """
    library = contender.partition("-")[0]
    args = given(contender, arguments)
    if library == "numpy":
        tracemalloc.start()
        result = function(*args)
        after, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        del result
        return peak - after
    if library == "opwise":
        import opwise

        with opwise.change_flags(profile_memory=True):
            source = _source(program, contender, opwise.value_and_grad)
            profiled = opwise.jit(source, profile=True)
            result = profiled(*args)
        sizes = sum(np.asarray(r).nbytes for r in leaves(result))
        functions = profiled.profile.profile().functions
        found = [f.memory.peak for f in functions if f.memory]
        return max(0, max(found) - sizes) if found else None
    if library == "jax":
        analysis = function.lower(*args).compile().memory_analysis()  # type: ignore[attr-defined]
        return int(analysis.temp_size_in_bytes)
    return None
