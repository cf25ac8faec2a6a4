"""``examine``: runs a RandomProgram in some configurations, and raises Fault if one is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opwise.compile.executable import Function
from opwise.compile.function import function
from opwise.compile.io import In
from opwise.config import change_flags
from opwise.graph.variable import Variable
from opwise.linkers import opwise_c
from opwise.modes.debugging.perturbation import Perturbed, beyond
from opwise.modes.mode import Mode
from opwise.testing.configurations import compiled_in
from opwise.testing.fuzz.grow import Fault
from opwise.testing.fuzz.program import Leaf, RandomProgram

#: how often each function is called; all calls must give the same bits, but for those of NaN
_CALLS = 4


def examine(program: RandomProgram, configurations: Iterable[str]) -> None:
    """Raise Fault for the first configuration whose results differ by more than rounding.

    Compares the outputs and the new values of shared variables with those of the plain run; checks
    that the arguments did not change.
    """
    for configuration in configurations:
        try:
            _examine(program, configuration)
        except Fault as fault:
            if not _confirmed(program, fault):
                continue
            raise
        finally:
            for name, leaf in program.leaves.items():
                if leaf.kind == "shared":
                    program.variables[name].set_value(leaf.argument(), borrow=True)


def compiled(program: RandomProgram, configuration: str) -> Function:
    """Return the function of a program, compiled in a configuration."""
    variables = program.variables
    inputs = [
        In(variables[leaf.name], mutable=leaf.kind == "mutable",
                  borrow=leaf.kind == "mutable")
        for leaf in program.arguments()
    ]  # fmt: skip

    def make(mode: Mode) -> Function:
        made: Function = function(
            inputs, [variables[name] for name in program.outputs], mode=mode,
            updates=[(variables[s], variables[v]) for s, v in program.updates.items()],
            on_unused_input="ignore", no_default_updates=True,
        )  # fmt: skip
        return made

    with change_flags(on_opt_error="raise", compute_test_value="off"):
        return compiled_in(configuration, make)


def _examine(program: RandomProgram, configuration: str) -> None:
    leaves = program.arguments()
    arguments = [leaf.argument() for leaf in leaves]
    try:
        f = compiled(program, configuration)
        found = f(*arguments)
    except Exception as error:  # the plain run raised nothing
        raise Fault(
            f"raises {type(error).__name__}: {error}", program, configuration, program.outputs
        ) from error
    for leaf, argument in zip(leaves, arguments, strict=True):
        if leaf.kind == "input" and argument.tobytes() != leaf.value.tobytes():
            raise Fault(f"the argument {leaf.name} was overwritten", program, configuration)
    results = [(name, name, value) for name, value in zip(program.outputs, found, strict=True)]
    for shared, new in program.updates.items():
        value = program.variables[shared].get_value(borrow=True)
        results.append((f"the update of {shared}", new, value))
    for label, name, value in results:
        how = _wrong(program.perturbed, program.variables[name], value)
        if how is not None:
            outputs = [name] if label == name else program.outputs
            raise Fault(f"{label}: {how}", program, configuration, outputs)
    if found:
        first = [np.array(value) for value in found]
        for k in range(2, _CALLS + 1):
            _call_again(program, f, leaves, configuration, first, k)


def _call_again(
    program: RandomProgram,
    f: Function,
    leaves: list[Leaf],
    configuration: str,
    first: list[Any],
    k: int,
) -> None:
    """Call a function for the k-th time, and raise Fault unless it gives the same bits.

    NaN may have others. Later calls reuse memory and see changed shared variables; on a device,
    they launch graphs.
    """
    for name, leaf in program.leaves.items():
        if leaf.kind == "shared":
            program.variables[name].set_value(leaf.argument(), borrow=True)
    try:
        if k == _CALLS and isinstance(f.fn, opwise_c.VM):
            f.fn.wait_for_kernels()
        again = f(*[leaf.argument() for leaf in leaves])
    except Exception as error:  # as above
        raise Fault(f"call {k} raises {type(error).__name__}: {error}", program, configuration,
                    program.outputs) from error  # fmt: skip
    for name, one, two in zip(program.outputs, first, again, strict=True):
        if not same_bits(one, np.asarray(two)):
            raise Fault(f"{name}: call {k} gives {two} after {one}", program, configuration)


def same_bits(one: np.ndarray, two: np.ndarray) -> bool:
    """Return whether two arrays have the same dtype, shape and bits; NaN is like any other NaN.

    The sum of two NaN has the sign and payload of one of them, and compilers exchange operands.
    """
    if (one.dtype, one.shape) != (two.dtype, two.shape):
        return False
    return bool(_without_payloads(one).tobytes() == _without_payloads(two).tobytes())


def _without_payloads(array: np.ndarray) -> np.ndarray:
    array = np.ascontiguousarray(array)
    if array.dtype.kind == "c":
        array = array.view(array.real.dtype)
    if array.dtype.kind != "f":
        return array
    return np.where(np.isnan(array), array.dtype.type(np.nan), array)


def _wrong(perturbed: Perturbed, var: Variable, value: Any) -> str | None:
    """Return how a value of a variable is wrong, or None."""
    [expected] = perturbed.compute([var])
    if not isinstance(value, np.ndarray):
        return f"a {type(value).__name__} instead of an array"
    how: str | None = beyond(expected, value, perturbed.allowed(var))
    return how


def _confirmed(program: RandomProgram, fault: Fault) -> bool:
    """Return whether a fault remains when larger perturbations are allowed."""
    names = [*fault.outputs, *program.updates.values()]
    if "raises" in str(fault)[:30] or not names:
        return True
    # leaves, and the states of random streams
    given = {var: value for var, value in program.perturbed.values.items() if var.owner is None}
    perturbed = Perturbed(given, runs=24, ulps=4.0, seed=1)
    with np.errstate(all="ignore"):
        perturbed.compute([program.variables[n] for n in [*program.statements]])
    stricter, program.perturbed = program.perturbed, perturbed
    try:
        _examine(program, fault.configuration)
    except Fault:
        return True
    finally:
        program.perturbed = stricter
        for name, leaf in program.leaves.items():
            if leaf.kind == "shared":
                program.variables[name].set_value(leaf.argument(), borrow=True)
    return False
